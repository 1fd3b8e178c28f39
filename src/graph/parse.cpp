// Reads the text form of a graph. Builds through Patch and verifies at the end, so that what it returns is sound whatever the
// text said.
#include <utility>

#include "core/type_text.h"
#include "graph/graph.h"
#include "graph/literal.h"
#include "graph/patch.h"
#include "support/strings.h"
#include "support/text_cursor.h"

namespace locution::graph {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text), patch_(graph_) {}

  Result<Graph> run() {
    LOCUTION_RETURN_IF_ERROR(in_.expect("graph"));
    LOCUTION_ASSIGN_OR_RETURN(graph_.name, in_.quotedText());
    LOCUTION_RETURN_IF_ERROR(in_.expect("{"));
    while (in_.eat("metadata")) {
      LOCUTION_ASSIGN_OR_RETURN(std::string key, in_.quotedText());
      LOCUTION_RETURN_IF_ERROR(in_.expect("="));
      LOCUTION_ASSIGN_OR_RETURN(graph_.metadata[key], in_.quotedText());
    }
    LOCUTION_RETURN_IF_ERROR(parseRegion(graph_.mainRegion(), 0));
    if (!in_.atEnd()) return in_.fail("expected the end");
    LOCUTION_RETURN_IF_ERROR(verify(graph_));
    return std::move(graph_);
  }

 private:
  // An output on the left of a node: a name and a type, or left out.
  struct Typed {
    std::string name;
    ValueType type;
    bool isAbsent = false;
  };

  Result<std::string> parseName() {
    if (in_.peek() == '"') return in_.quotedText();
    std::string name(in_.word(isBareNameChar));
    if (name.empty()) return in_.fail("expected a name");
    return name;
  }

  Result<Typed> parseTyped() {
    Typed out;
    LOCUTION_RETURN_IF_ERROR(in_.expect("%"));
    LOCUTION_ASSIGN_OR_RETURN(out.name, parseName());
    if (out.name.empty()) return in_.fail("a value without a name");
    if (graph_.findValue(out.name).isValid()) return in_.fail("the value %" + out.name + " is defined twice");
    LOCUTION_RETURN_IF_ERROR(in_.expect(":"));
    LOCUTION_ASSIGN_OR_RETURN(out.type, parseValueType(in_));
    return out;
  }

  Result<ValueId> parseReference() {
    if (in_.eat("_")) return ValueId{};
    LOCUTION_RETURN_IF_ERROR(in_.expect("%"));
    LOCUTION_ASSIGN_OR_RETURN(std::string name, parseName());
    ValueId id = graph_.findValue(name);
    if (!id.isValid()) return in_.fail("the value %" + name + " isn't defined before its use");
    return id;
  }

  Status parseConstant(RegionId region) {
    LOCUTION_ASSIGN_OR_RETURN(Typed typed, parseTyped());
    LOCUTION_RETURN_IF_ERROR(in_.expect("="));
    Tensor tensor;
    if (size_t start = in_.position(); in_.eat("tensor")) {
      in_.rewind(start);
      LOCUTION_ASSIGN_OR_RETURN(tensor, parseTensor(in_));
    } else {
      if (!typed.type.shape.isStatic()) return in_.fail("a constant needs a static shape");
      LOCUTION_ASSIGN_OR_RETURN(tensor, parseElements(in_, typed.type.dtype, typed.type.shape.extents()));
    }
    if (!tensor.isValid()) return in_.fail("a constant needs its elements");
    patch_.setType(patch_.addConstant(typed.name, std::move(tensor), region), std::move(typed.type));
    return Status::ok();
  }

  Status parseAttrs(Attrs& attrs) {
    do {
      LOCUTION_ASSIGN_OR_RETURN(std::string key, parseName());
      LOCUTION_RETURN_IF_ERROR(in_.expect("="));
      LOCUTION_ASSIGN_OR_RETURN(Attr attr, parseAttr(in_));
      if (!attrs.emplace(key, std::move(attr)).second) return in_.fail("the attribute " + key + " stands twice");
    } while (in_.eat(","));
    return in_.expect("}");
  }

  Result<std::vector<Typed>> parseOutputs() {
    std::vector<Typed> outputs;
    if (in_.eat("(")) {
      LOCUTION_RETURN_IF_ERROR(in_.expect(")"));
      return outputs;
    }
    do {
      if (in_.eat("_")) {
        outputs.emplace_back().isAbsent = true;
        continue;
      }
      LOCUTION_ASSIGN_OR_RETURN(Typed typed, parseTyped());
      for (const Typed& other : outputs)
        if (!other.isAbsent && other.name == typed.name)
          return in_.fail("the value %" + typed.name + " is defined twice");
      outputs.push_back(std::move(typed));
    } while (in_.eat(","));
    return outputs;
  }

  Status parseNode(RegionId region, int depth) {
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Typed> outputs, parseOutputs());
    Patch::NewNode made;
    for (Typed& typed : outputs) {
      made.names.push_back(std::move(typed.name));
      made.types.push_back(std::move(typed.type));
    }
    LOCUTION_RETURN_IF_ERROR(in_.expect("="));
    LOCUTION_ASSIGN_OR_RETURN(made.op, parseName());
    LOCUTION_RETURN_IF_ERROR(in_.expect("("));
    if (!in_.eat(")")) {
      do {
        LOCUTION_ASSIGN_OR_RETURN(ValueId input, parseReference());
        made.inputs.push_back(input);
      } while (in_.eat(","));
      LOCUTION_RETURN_IF_ERROR(in_.expect(")"));
    }
    if (in_.eat("{")) LOCUTION_RETURN_IF_ERROR(parseAttrs(made.attrs));
    if (in_.peek() == '"') {
      LOCUTION_ASSIGN_OR_RETURN(made.name, in_.quotedText());
    }
    if (in_.eat("@")) {
      LOCUTION_ASSIGN_OR_RETURN(int64_t index, in_.integer());
      if (index < 0 || index > INT32_MAX) return in_.fail("a source index out of range");
      made.sourceIndex = static_cast<int32_t>(index);
    }
    NodeId node = patch_.append(region, std::move(made));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].isAbsent) patch_.dropOutput(node, i);
    while (in_.eat("region")) {
      LOCUTION_RETURN_IF_ERROR(in_.expect("{"));
      LOCUTION_RETURN_IF_ERROR(parseRegion(patch_.addRegion(node), depth + 1));
    }
    return Status::ok();
  }

  // Up to and with the closing brace.
  Status parseRegion(RegionId region, int depth) {
    if (depth > kMaxParseDepth) return in_.fail("regions nested too deeply");
    std::vector<ValueId> outputs;
    while (!in_.eat("}")) {
      if (in_.eat("input")) {
        LOCUTION_ASSIGN_OR_RETURN(Typed typed, parseTyped());
        patch_.addInput(region, typed.name, std::move(typed.type));
      } else if (in_.eat("const")) {
        LOCUTION_RETURN_IF_ERROR(parseConstant(region));
      } else if (in_.eat("output")) {
        LOCUTION_ASSIGN_OR_RETURN(ValueId output, parseReference());
        if (!output.isValid()) return in_.fail("an output can't be left out");
        outputs.push_back(output);
      } else {
        LOCUTION_RETURN_IF_ERROR(parseNode(region, depth));
      }
    }
    patch_.setRegionOutputs(region, std::move(outputs));
    return Status::ok();
  }

  TextCursor in_;
  Graph graph_;
  Patch patch_;
};

}  // namespace

Result<Graph> parseGraph(std::string_view text) { return Parser(text).run(); }

}  // namespace locution::graph
