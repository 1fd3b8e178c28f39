#include "frontend/onnx/attributes.h"

#include <algorithm>
#include <set>

#include "frontend/onnx/messages.h"
#include "frontend/onnx/type_proto.h"

namespace locution::frontend {
namespace {

using onnx::AttributeProto;

struct AttrKind {
  std::string_view text;  ///< of the schema table
  AttributeProto::AttributeType type;
  std::string_view words;
};
constexpr AttrKind kKinds[] = {
    {"f", AttributeProto::FLOAT, "a float"},
    {"i", AttributeProto::INT, "an int"},
    {"d", AttributeProto::INT, "an int"},
    {"s", AttributeProto::STRING, "a string"},
    {"t", AttributeProto::TENSOR, "a tensor"},
    {"g", AttributeProto::GRAPH, "a graph"},
    {"sp", AttributeProto::SPARSE_TENSOR, "a sparse tensor"},
    {"tp", AttributeProto::TYPE_PROTO, "a type"},
    {"fs", AttributeProto::FLOATS, "floats"},
    {"is", AttributeProto::INTS, "ints"},
    {"ss", AttributeProto::STRINGS, "strings"},
    {"", AttributeProto::TENSORS, "tensors"},
    {"", AttributeProto::GRAPHS, "graphs"},
    {"", AttributeProto::SPARSE_TENSORS, "sparse tensors"},
    {"", AttributeProto::TYPE_PROTOS, "types"},
};

/// The type that is written, or (files of the first exporters write none) the one the fields show.
AttributeProto::AttributeType typeOf(const AttributeProto& p) {
  if (p.type() != AttributeProto::UNDEFINED) return p.type();
  if (p.has_f()) return AttributeProto::FLOAT;
  if (p.has_i()) return AttributeProto::INT;
  if (p.has_s()) return AttributeProto::STRING;
  if (p.has_t()) return AttributeProto::TENSOR;
  if (p.has_g()) return AttributeProto::GRAPH;
  if (p.has_sparse_tensor()) return AttributeProto::SPARSE_TENSOR;
  if (p.has_tp()) return AttributeProto::TYPE_PROTO;
  if (p.floats_size() > 0) return AttributeProto::FLOATS;
  if (p.ints_size() > 0) return AttributeProto::INTS;
  if (p.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

std::string wordsFor(AttributeProto::AttributeType type) {
  for (const AttrKind& k : kKinds)
    if (k.type == type) return std::string(k.words);
  return "of no type";
}

Result<graph::Attr> readValue(AttributeProto& p, std::string_view kind, bool keep, AttrTensors& tensors) {
  if (kind == "i") return graph::Attr(static_cast<int64_t>(p.i()));
  if (kind == "f") return graph::Attr(static_cast<double>(p.f()));
  if (kind == "s") return graph::Attr(p.s());
  if (kind == "is") return graph::Attr(std::vector<int64_t>(p.ints().begin(), p.ints().end()));
  if (kind == "fs") return graph::Attr(std::vector<double>(p.floats().begin(), p.floats().end()));
  if (kind == "ss") return graph::Attr(std::vector<std::string>(p.strings().begin(), p.strings().end()));
  if (kind == "t" || kind == "sp") {
    auto tensor =
        kind == "t" ? tensors.read(*p.mutable_t(), keep) : tensors.readSparse(*p.mutable_sparse_tensor(), keep);
    if (!tensor) return tensor.status();
    return graph::Attr(std::move(*tensor));
  }
  if (kind == "d") {
    std::optional<DType> dtype = dtypeOfProto(p.i());
    if (!dtype) return Status::error("unknown data type " + std::to_string(p.i()));
    return graph::Attr(std::string(dtypeName(*dtype)));
  }
  LOCUTION_CHECK(kind == "tp") << kind;
  LOCUTION_ASSIGN_OR_RETURN(ValueType type, TypeReader().read(p.tp(), ""));
  return graph::Attr(type.str());
}

}  // namespace

Result<Tensor> AttrTensors::read(onnx::TensorProto& proto, bool keep) {
  if (!keep) return reader_.take(proto);
  if (auto at = kept_.find(&proto); at != kept_.end()) return at->second;
  LOCUTION_ASSIGN_OR_RETURN(Tensor tensor, reader_.take(proto));
  kept_.emplace(&proto, tensor);
  return tensor;
}

Result<Tensor> AttrTensors::readSparse(onnx::SparseTensorProto& proto, bool keep) {
  if (!keep) return reader_.takeSparse(proto);
  if (auto at = kept_.find(&proto); at != kept_.end()) return at->second;
  LOCUTION_ASSIGN_OR_RETURN(Tensor tensor, reader_.takeSparse(proto));
  kept_.emplace(&proto, tensor);
  return tensor;
}

Result<AttrSource> resolveAttr(AttributeProto& proto, const Scope& scope, const AttrBindings* bindings) {
  if (proto.ref_attr_name().empty()) return AttrSource{&proto, &scope};
  if (bindings == nullptr)
    return Status::error("attribute " + named(proto.name()) + " refers to " + named(proto.ref_attr_name()) +
                         ", which only a function can");
  auto at = bindings->find(proto.ref_attr_name());
  return at == bindings->end() ? AttrSource{} : at->second;
}

Result<NodeAttrs> readAttrs(onnx::NodeProto& node, const OpRow& row, const Scope& scope, const AttrBindings* bindings,
                            bool keep, AttrTensors& tensors, std::vector<std::string>& warnings) {
  NodeAttrs out;
  std::vector<AttrSpec> specs = attrSpecs(row);
  std::set<std::string> seen;
  for (AttributeProto& given : *node.mutable_attribute()) {
    const std::string& name = given.name();
    auto spec = std::find_if(specs.begin(), specs.end(), [&](const AttrSpec& s) { return s.name == name; });
    if (spec == specs.end()) {
      warnings.push_back("attribute " + named(name) + " is unknown and ignored");
      continue;
    }
    if (!seen.insert(name).second) return Status::error("attribute " + named(name) + " is given twice");
    LOCUTION_ASSIGN_OR_RETURN(AttrSource source, resolveAttr(given, scope, bindings));
    if (source.proto == nullptr) continue;
    const AttrKind* kind =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const AttrKind& k) { return k.text == spec->type; });
    LOCUTION_CHECK(kind != std::end(kKinds)) << row.name << " " << spec->type;
    AttributeProto::AttributeType type = typeOf(*source.proto);
    // An empty list without a type is any list.
    if (type == AttributeProto::UNDEFINED && spec->type.back() == 's' && spec->type.size() == 2) type = kind->type;
    if (type != kind->type)
      return Status::error("attribute " + named(name) + " is " + wordsFor(type) + ", it should be " +
                           std::string(kind->words));
    if (spec->type == "g") {
      out.graphs.emplace(name, source);
      continue;
    }
    // A data type of 0 says "as if it were not there".
    if (spec->type == "d" && source.proto->i() == 0 && !spec->required) continue;
    auto value = readValue(*source.proto, spec->type, keep, tensors);
    if (!value) return value.status().withContext("attribute " + named(name));
    out.values.emplace(name, std::move(*value));
  }
  for (const AttrSpec& spec : specs)
    if (spec.required && !out.values.contains(spec.name) && !out.graphs.contains(spec.name))
      return Status::error("attribute " + named(spec.name) + " is missing");
  return out;
}

}  // namespace locution::frontend
