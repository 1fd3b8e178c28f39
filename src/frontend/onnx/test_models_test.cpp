// The builders of test_models.h; a test file so that only the test binary holds them.
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "frontend/onnx/test_models.h"

namespace locution::frontend::testing {

using onnx::AttributeProto;

AttributeProto& Attributes::add(const std::string& name, AttributeProto::AttributeType type) {
  AttributeProto& out = *node_.add_attribute();
  out.set_name(name);
  out.set_type(type);
  return out;
}
Attributes& Attributes::i(const std::string& name, int64_t value) {
  add(name, AttributeProto::INT).set_i(value);
  return *this;
}
Attributes& Attributes::f(const std::string& name, float value) {
  add(name, AttributeProto::FLOAT).set_f(value);
  return *this;
}
Attributes& Attributes::s(const std::string& name, const std::string& value) {
  add(name, AttributeProto::STRING).set_s(value);
  return *this;
}
Attributes& Attributes::is(const std::string& name, const std::vector<int64_t>& values) {
  AttributeProto& a = add(name, AttributeProto::INTS);
  for (int64_t v : values) a.add_ints(v);
  return *this;
}
Attributes& Attributes::fs(const std::string& name, const std::vector<float>& values) {
  AttributeProto& a = add(name, AttributeProto::FLOATS);
  for (float v : values) a.add_floats(v);
  return *this;
}
Attributes& Attributes::ss(const std::string& name, const Names& values) {
  AttributeProto& a = add(name, AttributeProto::STRINGS);
  for (const std::string& v : values) a.add_strings(v);
  return *this;
}
Attributes& Attributes::t(const std::string& name, const Tensor& value) {
  *add(name, AttributeProto::TENSOR).mutable_t() = tensorToProto("", value);
  return *this;
}
Attributes& Attributes::g(const std::string& name, const onnx::GraphProto& value) {
  *add(name, AttributeProto::GRAPH).mutable_g() = value;
  return *this;
}
Attributes& Attributes::ref(const std::string& name, const std::string& functionAttribute,
                            AttributeProto::AttributeType type) {
  add(name, type).set_ref_attr_name(functionAttribute);
  return *this;
}

void addValueInfo(onnx::ValueInfoProto& info, const std::string& name, DType dtype, const Names& dims) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(protoOfDType(dtype));
  type.mutable_shape();
  for (const std::string& dim : dims) {
    auto& to = *type.mutable_shape()->add_dim();
    if (dim.empty()) continue;
    if (dim.find_first_not_of("-0123456789") == std::string::npos)
      to.set_dim_value(std::stoll(dim));
    else
      to.set_dim_param(dim);
  }
}

TestModel::TestModel(int64_t opset) {
  proto.set_ir_version(8);
  graph().set_name("test");
  import("", opset);
  input("x", DType::F32, {"batch", "3", "4"});
}
void TestModel::import(const std::string& domain, int64_t version) {
  auto& import = *proto.add_opset_import();
  import.set_domain(domain);
  import.set_version(version);
}
void TestModel::input(const std::string& name, DType dtype, const Names& dims) {
  addValueInfo(*graph().add_input(), name, dtype, dims);
}
void TestModel::constant(const std::string& name, const Tensor& tensor) {
  *graph().add_initializer() = tensorToProto(name, tensor);
}
void TestModel::output(const std::string& name) { graph().add_output()->set_name(name); }
std::string TestModel::bytes() const { return proto.SerializeAsString(); }

Result<ImportedModel> TestModel::tryImport(ImportOptions options) const {
  std::string text = bytes();
  return importModel(std::as_bytes(std::span(text)), "test.onnx", "", options);
}
std::string TestModel::text() const {
  ImportOptions options;
  options.requireKnownOps = false;
  auto model = tryImport(options);
  if (!model) return "error: " + model.status().message();
  Status status = graph::verify(model->graph);
  if (!status) return "broken: " + status.message();
  return toText(model->graph, model->graph.mainRegion());
}
std::string TestModel::error() const {
  ImportOptions options;
  options.requireKnownOps = false;
  auto model = tryImport(options);
  return model ? "no error" : model.status().message();
}

namespace {

std::string constantText(const Tensor& t) {
  std::ostringstream out;
  out << dtypeName(t.dtype());
  if (t.rank() > 0) out << "[" << t.shape().str() << "]";
  if (t.elements() > 8) return out.str();
  out << "{";
  for (int64_t i = 0; i < t.elements(); ++i) {
    out << (i ? " " : "");
    if (t.dtype() == DType::String)
      out << t.strings()[static_cast<size_t>(i)];
    else if (isFloat(t.dtype()))
      out << t.elementAsDouble(i);
    else
      out << t.elementAsInt(i);
  }
  out << "}";
  return out.str();
}

std::string attrText(const graph::Attr& attr) {
  std::ostringstream out;
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          out << constantText(value);
        } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                             std::is_same_v<T, std::string>) {
          out << value;
        } else {
          out << "[";
          for (size_t i = 0; i < value.size(); ++i) out << (i ? " " : "") << value[i];
          out << "]";
        }
      },
      attr);
  return out.str();
}

}  // namespace

std::string toText(const graph::Graph& graph, graph::RegionId region, const std::string& indent) {
  auto valueText = [&](graph::ValueId id) {
    if (!id.isValid()) return std::string("_");
    const graph::Value& value = graph.value(id);
    return value.isConstant() ? constantText(value.constant) : value.name;
  };
  auto listText = [&](const std::vector<graph::ValueId>& ids) {
    std::string out;
    for (size_t i = 0; i < ids.size(); ++i) out += (i ? ", " : "") + valueText(ids[i]);
    return out;
  };
  std::string out;
  if (!indent.empty()) out += indent + "in " + listText(graph.region(region).inputs) + "\n";
  for (graph::NodeId id : graph.region(region).nodes) {
    const graph::Node& node = graph.node(id);
    out += indent + listText(node.outputs) + " = " + node.op + "(" + listText(node.inputs) + ")";
    for (const auto& [name, value] : node.attrs) out += " " + name + "=" + attrText(value);
    out += "\n";
    for (graph::RegionId inner : node.regions) out += toText(graph, inner, indent + "  ");
  }
  return out + indent + "out " + listText(graph.region(region).outputs) + "\n";
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "locution-XXXXXX";
  path_ = mkdtemp(pattern.data());
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
void TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(file(name), std::ios::binary) << bytes;
}

}  // namespace locution::frontend::testing
