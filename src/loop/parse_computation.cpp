// Reads the text that print(Computation) writes: stages, or raw loops.
#include <charconv>

#include "loop/build.h"
#include "loop/computation_text.h"
#include "loop/parser.h"
#include "loop/text.h"

namespace locution::loop {

Result<Computation> Parser::computation() {
  Computation c;
  LOCUTION_RETURN_IF_ERROR(expect("computation"));
  LOCUTION_ASSIGN_OR_RETURN(c.name, title("the computation's name"));
  LOCUTION_RETURN_IF_ERROR(inputs(&c));
  LOCUTION_RETURN_IF_ERROR(expect("->"));
  LOCUTION_RETURN_IF_ERROR(outputs(&c));
  LOCUTION_RETURN_IF_ERROR(expect("{"));
  // Raw loops say what their outputs are before them, stages where they define them.
  if (undefined_.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Stmt> stmts, statements());
    c.raw = block(std::move(stmts));
  } else {
    while (!accept("}")) {
      LOCUTION_ASSIGN_OR_RETURN(Stage s, stage(&c));
      c.stages.push_back(std::move(s));
    }
    if (!undefined_.empty()) return wrong("no stage defines the output " + undefined_.begin()->first);
  }
  LOCUTION_RETURN_IF_ERROR(end());
  LOCUTION_RETURN_IF_ERROR(verify(c));
  return c;
}

Status Parser::inputs(Computation* c) {
  LOCUTION_RETURN_IF_ERROR(expect("("));
  while (!accept(")")) {
    bool isConstant = accept("constant");
    LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
    if (buffers_.count(name)) return wrong("two inputs are named " + name);
    LOCUTION_RETURN_IF_ERROR(expect(":"));
    LOCUTION_ASSIGN_OR_RETURN(BufferRef b, bufferOf(name, Scope::Global));
    buffers_[name] = b;
    c->inputs.push_back(b);
    if (isConstant) c->constants.push_back(b);
    if (!at(")")) LOCUTION_RETURN_IF_ERROR(expect(","));
  }
  return Status::ok();
}

Status Parser::outputs(Computation* c) {
  LOCUTION_RETURN_IF_ERROR(expect("("));
  while (!accept(")")) {
    LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
    if (buffers_.count(name) || undefined_.count(name)) return wrong("two parameters are named " + name);
    BufferRef b;
    if (accept(":")) {
      LOCUTION_ASSIGN_OR_RETURN(b, bufferOf(name, Scope::Global));
      buffers_[name] = b;
    } else {
      undefined_[name] = c->outputs.size();
    }
    c->outputs.push_back(b);
    if (!at(")")) LOCUTION_RETURN_IF_ERROR(expect(","));
  }
  return Status::ok();
}

Result<std::vector<Axis>> Parser::axes() {
  std::vector<Axis> out;
  LOCUTION_RETURN_IF_ERROR(expect("["));
  while (!accept("]")) {
    LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
    LOCUTION_RETURN_IF_ERROR(expect("<"));
    std::string_view digits = lexer_.text();
    Axis a{makeVar(name), 0};
    auto r = std::from_chars(digits.data(), digits.data() + digits.size(), a.extent);
    if (lexer_.kind() != Token::Number || r.ec != std::errc() || r.ptr != digits.data() + digits.size())
      return error("an extent");
    lexer_.advance();
    // The names of one stage's axes are apart, and no other variable is in scope.
    if (!vars_.emplace(name, a.var).second) return wrong("two axes are named " + name);
    out.push_back(std::move(a));
    if (!at("]")) LOCUTION_RETURN_IF_ERROR(expect(","));
  }
  return out;
}

Result<Stage> Parser::stage(Computation* c) {
  Stage s;
  vars_.clear();
  shared_.clear();
  sharedVars_.clear();
  Scope scope = accept("stack") ? Scope::Stack : accept("register") ? Scope::Register : Scope::Global;
  LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
  if (buffers_.count(name)) return wrong(name + " is defined before");
  LOCUTION_ASSIGN_OR_RETURN(s.axes, axes());
  LOCUTION_RETURN_IF_ERROR(expect(":"));
  LOCUTION_ASSIGN_OR_RETURN(s.out, bufferOf(name, scope));
  LOCUTION_RETURN_IF_ERROR(expect("="));
  sharing_ = true;
  if (auto where = findWhere()) {
    // The accumulator's type is known once its value is read, which stands behind the epilogue that uses it.
    Lexer epilogue = lexer_;
    lexer_ = *where;
    LOCUTION_RETURN_IF_ERROR(expect("where"));
    LOCUTION_ASSIGN_OR_RETURN(std::string acc, identifier());
    LOCUTION_RETURN_IF_ERROR(expect("="));
    LOCUTION_RETURN_IF_ERROR(value(&s));
    Lexer behind = lexer_;
    lexer_ = epilogue;
    s.acc = makeVar(acc, s.body->type);
    for (const Axis& a : s.reduce) vars_.erase(a.var->name);
    if (!vars_.emplace(acc, s.acc).second) return wrong("an axis and the accumulator are named " + acc);
    LOCUTION_ASSIGN_OR_RETURN(s.epilogue, expression());
    if (!at("where")) return error("'where'");
    lexer_ = behind;
  } else {
    LOCUTION_RETURN_IF_ERROR(value(&s));
  }
  sharing_ = false;
  vars_.clear();
  buffers_[name] = s.out;
  if (auto it = undefined_.find(name); it != undefined_.end()) {
    c->outputs[it->second] = s.out;
    undefined_.erase(it);
  }
  return s;
}

std::optional<Lexer> Parser::findWhere() const {
  Lexer ahead = lexer_;
  int open = 0;
  for (; ahead.kind() != Token::End; ahead.advance()) {
    std::string_view t = ahead.text();
    if (ahead.kind() == Token::Word && t == "where" && open == 0) return ahead;
    if (ahead.kind() != Token::Symbol) continue;
    if (t == "(" || t == "[") ++open;
    if (t == ")" || t == "]") --open;
    // The next stage, or the end of all.
    if (open == 0 && (t == "=" || t == ":" || t == "}")) break;
  }
  return std::nullopt;
}

Status Parser::value(Stage* s) {
  static constexpr std::pair<std::string_view, Combiner> kCombiners[] = {
      {"sum", Combiner::Sum}, {"product", Combiner::Product}, {"max", Combiner::Max},
      {"min", Combiner::Min}, {"and", Combiner::And},         {"or", Combiner::Or}};
  s->scanReverse = accept("reverse");
  s->scanExclusive = accept("exclusive");
  s->scan = accept("scan");
  if (!s->scan && (s->scanReverse || s->scanExclusive)) return error("'scan'");
  for (auto& [word, combiner] : kCombiners) {
    // max(a, b) is an expression, max[k < 3](a) a reduction.
    if (!at(word) || !(s->scan || isNext("["))) continue;
    s->combiner = combiner;
    lexer_.advance();
    if (!s->scan) {
      LOCUTION_ASSIGN_OR_RETURN(s->reduce, axes());
    }
    LOCUTION_RETURN_IF_ERROR(expect("("));
    LOCUTION_ASSIGN_OR_RETURN(s->body, expression());
    return expect(")");
  }
  if (s->scan) return error("how to combine");
  LOCUTION_ASSIGN_OR_RETURN(s->body, expression());
  return Status::ok();
}

Result<Computation> parseComputation(std::string_view text) { return Parser(text).computation(); }

}  // namespace locution::loop
