// Loop IR as text for people; parse.cpp reads it back. Names are made unique among those in scope, so the text of a function
// says all that its meaning needs: printing what was parsed gives the same text.
#include <algorithm>
#include <map>
#include <set>

#include "loop/build.h"
#include "loop/computation_text.h"
#include "loop/passes.h"
#include "loop/scalar.h"
#include "loop/text.h"
#include "support/check.h"
#include "support/strings.h"

namespace locution::loop {
namespace {

std::string_view opText(BinaryOp op) {
  static constexpr std::string_view kTexts[] = {
#define BINARY_OP(Name, text) text,
#include "loop/nodes.inc"
#undef BINARY_OP
  };
  return kTexts[static_cast<size_t>(op)];
}

std::string titleText(const std::string& name) { return identifierText(name) == name ? name : quoted(name); }

/// What is bound: the letter of its name where names are left out.
enum class Named : char { Axis = 'i', Reduced = 'r', Buffer = 'b', Let = 'v', Accumulator = 'a' };

class Printer {
 public:
  explicit Printer(bool nameFree = false) : nameFree_(nameFree) {}
  std::string expr(const Expr& e) { return text(e, 0); }

  void stmt(const Stmt& s, int depth) {
    std::string pad(static_cast<size_t>(depth) * 2, ' ');
    switch (s->kind) {
      case StmtKind::Store: {
        auto* n = as<Store>(s);
        out_ += pad + access(*n->buffer, n->indices, n->mask) + " = " + expr(n->value) + "\n";
        break;
      }
      case StmtKind::For: {
        auto* n = as<For>(s);
        static constexpr std::string_view kKinds[] = {"", "parallel ", "vector ", "unrolled "};
        int64_t min = 0;
        bool fromZero = as<IntImm>(n->min) && isConstInt(n->min, &min) && min == 0;
        std::string range = fromZero ? "0.." + expr(n->extent) : expr(n->min) + "..+" + expr(n->extent);
        std::string name = bind(n->var.get(), n->var->name, Named::Axis);
        out_ += pad + std::string(kKinds[static_cast<size_t>(n->loop)]) + "for " + name + " in " + range;
        braces(n->body, depth);
        unbind(n->var.get());
        break;
      }
      case StmtKind::Block:
        for (const Stmt& inner : as<Block>(s)->stmts) stmt(inner, depth);
        break;
      case StmtKind::IfThen: {
        auto* n = as<IfThen>(s);
        out_ += pad + "if " + expr(n->condition);
        braces(n->then, depth, !n->otherwise);
        if (n->otherwise) {
          out_ += pad + "} else";
          braces(n->otherwise, depth);
        }
        break;
      }
      case StmtKind::Allocate: {
        auto* n = as<Allocate>(s);
        std::string type = bufferType(*n->buffer);
        std::string name = bind(n->buffer.get(), n->buffer->name, Named::Buffer);
        out_ += pad + std::string(scopeName(n->buffer->scope)) + " " + name + ": " + type;
        braces(n->body, depth);
        unbind(n->buffer.get());
        break;
      }
      case StmtKind::LetStmt: {
        auto* n = as<LetStmt>(s);
        std::string value = expr(n->value);
        std::string name = bind(n->var.get(), n->var->name, Named::Let);
        out_ += pad + "let " + name + " = " + value;
        braces(n->body, depth);
        unbind(n->var.get());
        break;
      }
    }
  }

  std::string function(const Function& f) {
    LOCUTION_CHECK(f.outputCount <= f.params.size());
    size_t inputs = f.params.size() - f.outputCount;
    std::string in, outputs;
    for (size_t i = 0; i < f.params.size(); ++i) {
      std::string& list = i < inputs ? in : outputs;
      std::string type = bufferType(*f.params[i]);
      if (!list.empty()) list += ", ";
      list += bind(f.params[i].get(), f.params[i]->name, Named::Buffer) + ": " + type;
    }
    out_ = "function " + titleText(f.name) + "(" + in + ") -> (" + outputs + ")";
    braces(f.body, 0);
    return std::move(out_);
  }

  std::string computation(const Computation& c) {
    out_ = "computation " + (nameFree_ ? "kernel" : titleText(c.name)) + "(";
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      std::string type = bufferType(*c.inputs[i]);
      bool known = std::find(c.constants.begin(), c.constants.end(), c.inputs[i]) != c.constants.end();
      out_ += std::string(i ? ", " : "") + (known ? "constant " : "");
      out_ += bind(c.inputs[i].get(), c.inputs[i]->name, Named::Buffer) + ": " + type;
    }
    out_ += ") -> (";
    for (size_t i = 0; i < c.outputs.size(); ++i) {
      // A stage says the type where it defines the buffer.
      std::string type = c.stages.empty() ? ": " + bufferType(*c.outputs[i]) : "";
      out_ += (i ? ", " : "") + name(*c.outputs[i]) + type;
    }
    out_ += ") {\n";
    for (const Stage& s : c.stages) stage(s);
    if (c.raw) stmt(c.raw, 1);
    out_ += "}\n";
    return std::move(out_);
  }

  std::string takeText() { return std::move(out_); }

 private:
  void stage(const Stage& s) {
    std::string type = bufferType(*s.out), axes, reduce;
    for (const Axis& a : s.axes)
      axes +=
          (axes.empty() ? "" : ", ") + bind(a.var.get(), a.var->name, Named::Axis) + " < " + std::to_string(a.extent);
    for (const Axis& a : s.reduce)
      reduce += (reduce.empty() ? "" : ", ") + bind(a.var.get(), a.var->name, Named::Reduced) + " < " +
                std::to_string(a.extent);
    std::string scope = s.out->scope == Scope::Global ? "" : std::string(scopeName(s.out->scope)) + " ";
    out_ += "  " + scope + name(*s.out) + "[" + axes + "]: " + type + " = ";
    static constexpr std::string_view kNames[] = {"", "sum", "product", "max", "min", "and", "or"};
    std::string body = expr(s.body);
    if (s.combiner != Combiner::None) {
      std::string kind = std::string(s.scanReverse ? "reverse " : "") + (s.scanExclusive ? "exclusive " : "") +
                         (s.scan ? "scan " : "");
      body = kind + std::string(kNames[static_cast<size_t>(s.combiner)]) + (s.scan ? "" : "[" + reduce + "]") + "(" +
             body + ")";
    }
    if (s.epilogue) {
      std::string acc = bind(s.acc.get(), s.acc->name, Named::Accumulator);
      out_ += expr(s.epilogue) + " where " + acc + " = " + body + "\n";
      unbind(s.acc.get());
    } else {
      out_ += body + "\n";
    }
    for (const Axis& a : s.axes) unbind(a.var.get());
    for (const Axis& a : s.reduce) unbind(a.var.get());
  }

  void braces(const Stmt& body, int depth, bool close = true) {
    out_ += " {\n";
    if (body) stmt(body, depth + 1);
    if (close) out_ += std::string(static_cast<size_t>(depth) * 2, ' ') + "}\n";
  }

  static std::string_view scopeName(Scope s) {
    return s == Scope::Global ? "global" : s == Scope::Stack ? "stack" : "register";
  }

  std::string bufferType(const Buffer& b) {
    std::string dims;
    for (const Expr& d : b.dims) dims += (dims.empty() ? "" : ", ") + expr(d);
    return typeText(b.element) + "[" + dims + "]";
  }

  std::string access(const Buffer& b, const std::vector<Expr>& indices, const Expr& mask) {
    std::string out = name(b) + "[";
    for (size_t i = 0; i < indices.size(); ++i) out += (i ? ", " : "") + expr(indices[i]);
    if (mask) out += "; " + expr(mask);
    return out + "]";
  }

  std::string list(std::initializer_list<Expr> args) {
    std::string out = "(";
    for (const Expr& a : args) out += (out.size() > 1 ? ", " : "") + expr(a);
    return out + ")";
  }

  /// `precedence`: that of the operator around; parentheses when ours binds no tighter.
  std::string text(const Expr& e, int precedence) {
    switch (e->kind) {
      case ExprKind::IntImm:
        return intText(e->type.dtype, as<IntImm>(e)->value);
      case ExprKind::FloatImm:
        return floatText(e->type.dtype, as<FloatImm>(e)->value);
      case ExprKind::Var:
        return name(e.get(), as<Var>(e)->name, Named::Let);
      case ExprKind::Cast:
        return std::string(dtypeName(e->type.dtype)) + list({as<Cast>(e)->value});
      case ExprKind::Binary: {
        auto* n = as<Binary>(e);
        if (n->op == BinaryOp::Min || n->op == BinaryOp::Max) return std::string(opText(n->op)) + list({n->a, n->b});
        int own = precedenceOf(n->op);
        // Comparisons don't chain.
        std::string left = text(n->a, isComparison(n->op) ? own + 1 : own), right = text(n->b, own + 1);
        std::string out = left + " " + std::string(opText(n->op)) + " " + right;
        return own < precedence ? "(" + out + ")" : out;
      }
      case ExprKind::Select:
        return "select" + list({as<Select>(e)->condition, as<Select>(e)->yes, as<Select>(e)->no});
      case ExprKind::Load:
        return access(*as<Load>(e)->buffer, as<Load>(e)->indices, as<Load>(e)->mask);
      case ExprKind::Ramp:
        return "ramp" + list({as<Ramp>(e)->base, as<Ramp>(e)->stride, index(e->type.lanes)});
      case ExprKind::Broadcast:
        return "broadcast" + list({as<Broadcast>(e)->value, index(e->type.lanes)});
      case ExprKind::Call: {
        auto* n = as<Call>(e);
        std::string out = n->name;
        if (n->name == "bitcast") out += "<" + std::string(dtypeName(e->type.dtype)) + ">";
        out += "(";
        for (size_t i = 0; i < n->args.size(); ++i) out += (i ? ", " : "") + expr(n->args[i]);
        return out + ")";
      }
      case ExprKind::VectorReduce:
        return "reduce_" + std::string(reduceName(as<VectorReduce>(e)->op)) + list({as<VectorReduce>(e)->value});
      case ExprKind::LetExpr: {
        auto* n = as<LetExpr>(e);
        std::string value = expr(n->value);
        std::string bound = bind(n->var.get(), n->var->name, Named::Let);
        std::string out = "(let " + bound + " = " + value + " in " + expr(n->body) + ")";
        unbind(n->var.get());
        return out;
      }
    }
    return "?";
  }

  /// The name of something bound, or of something free, which then keeps it.
  std::string name(const void* what, const std::string& wanted, Named kind) {
    auto it = names_.find(what);
    return it != names_.end() && !it->second.empty() ? it->second.back() : bind(what, wanted, kind);
  }
  std::string name(const Buffer& b) { return name(&b, b.name, Named::Buffer); }
  std::string bind(const void* what, const std::string& wanted, Named kind) {
    std::string base = identifierText(wanted), unique = base;
    if (nameFree_) {
      const bool isAcc = kind == Named::Accumulator;
      base = isAcc ? "acc" : std::string(1, static_cast<char>(kind));
      unique = isAcc ? base : base + "0";
      for (int n = 1; used_.count(unique); ++n) unique = base + std::to_string(n);
    } else {
      for (int n = 1; used_.count(unique); ++n) unique = base + "_" + std::to_string(n);
    }
    used_.insert(unique);
    names_[what].push_back(unique);
    return unique;
  }
  void unbind(const void* what) {
    auto& stack = names_[what];
    used_.erase(stack.back());
    stack.pop_back();
  }

  bool nameFree_;
  std::string out_;
  std::map<const void*, std::vector<std::string>> names_;  // only looked up, never iterated
  std::set<std::string> used_;
};

}  // namespace

std::string print(const Expr& e) { return Printer().expr(e); }
std::string print(const Stmt& s) {
  Printer p;
  p.stmt(s, 0);
  return p.takeText();
}
std::string print(const Function& f) { return Printer().function(f); }
std::string print(const Computation& c) { return Printer().computation(c); }
std::string printNameFree(const Computation& c) { return Printer(true).computation(c); }

}  // namespace locution::loop
