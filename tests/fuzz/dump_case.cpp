#include "dump_case.h"

#include <filesystem>
#include <fstream>

#include "graph/literal.h"
#include "runtime/npy.h"
#include "support/strings.h"

namespace locution::fuzz {

namespace {

using graph::ValueId;

std::string fileName(ValueId v) { return "v" + std::to_string(v.index); }

std::string names(const std::vector<ValueId>& list) {
  std::vector<std::string> out;
  for (ValueId v : list) out.push_back(v.isValid() ? fileName(v) : "");
  return join(out, ",");
}

template <typename T, typename F>
std::string listed(const std::vector<T>& list, F text) {
  std::vector<std::string> out;
  for (const T& v : list) out.push_back(text(v));
  return join(out, ",");
}

struct AttrText {
  const std::string& folder;
  std::string file;  // for tensors
  Status status;

  std::string operator()(int64_t v) { return "i:" + std::to_string(v); }
  std::string operator()(double v) { return "f:" + graph::floatText(v); }
  std::string operator()(const std::string& v) { return "s:" + v; }
  std::string operator()(const std::vector<int64_t>& v) {
    return "I:" + listed(v, [](int64_t x) { return std::to_string(x); });
  }
  std::string operator()(const std::vector<double>& v) { return "F:" + listed(v, graph::floatText); }
  std::string operator()(const std::vector<std::string>& v) {
    return "S:" + listed(v, [](const std::string& x) { return x; });
  }
  std::string operator()(const Tensor& v) {
    status = runtime::writeNpy(folder + "/" + file + ".npy", v);
    return "t:" + file;
  }
};

}  // namespace

Status dumpCase(const std::string& folder, const graph::Graph& graph, const std::map<std::string, Tensor>& inputs,
                const std::vector<Tensor>& outputs) {
  std::filesystem::create_directories(folder);
  std::ofstream out(folder + "/case.txt");
  auto write = [&](ValueId v, const Tensor& t) { return runtime::writeNpy(folder + "/" + fileName(v) + ".npy", t); };
  auto line = [&](const char* what, ValueId v) {
    out << what << " " << fileName(v) << " " << dtypeName(graph.type(v).dtype) << "\n";
  };
  for (ValueId v : graph.main().inputs) {
    line("input", v);
    LOCUTION_RETURN_IF_ERROR(write(v, inputs.at(graph.value(v).name)));
  }
  for (int32_t i = 0; i < graph.valueCount(); ++i) {
    const Tensor* t = graph.constant(ValueId{i});
    if (!t || !graph.isUsed(ValueId{i})) continue;
    line("constant", ValueId{i});
    LOCUTION_RETURN_IF_ERROR(write(ValueId{i}, *t));
  }
  for (graph::NodeId n : graph.main().nodes) {
    const graph::Node& node = graph.node(n);
    out << "node " << node.op << "|" << names(node.inputs) << "|" << names(node.outputs);
    for (const auto& [key, attr] : node.attrs) {
      AttrText text{folder, "a" + std::to_string(n.index) + key, {}};
      out << "|" << key << "=" << std::visit(text, attr);
      LOCUTION_RETURN_IF_ERROR(text.status);
    }
    out << "\n";
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    line("output", graph.main().outputs[i]);
    LOCUTION_RETURN_IF_ERROR(write(graph.main().outputs[i], outputs[i]));
  }
  return out.flush() ? Status::ok() : Status::error(folder + ": can't be written");
}

}  // namespace locution::fuzz
