#include "node_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "compare.h"
#include "driver/compiler.h"
#include "emulated.h"
#include "frontend/onnx/onnx_importer.h"
#include "frontend/onnx/tensor_files.h"
#include "graph/patch.h"
#include "runtime/context.h"

namespace locution::conformance {

namespace fs = std::filesystem;

bool passed(Outcome outcome) {
  return outcome == Outcome::Compiled || outcome == Outcome::Folded || outcome == Outcome::Host;
}

std::vector<std::string> caseNames(const std::string& suite) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(suite, error))
    if (fs::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// Just enough of protobuf's wire format to find strings: walks the fields of one message.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}
  // The next field that holds bytes; false at the end.
  bool next(uint64_t* number, std::string_view* bytes) {
    while (!rest_.empty()) {
      uint64_t key = varint();
      *number = key >> 3;
      switch (key & 7) {
        case 0:
          varint();
          break;
        case 1:
          skip(8);
          break;
        case 5:
          skip(4);
          break;
        case 2:
          *bytes = skip(varint());
          return true;
        default:
          return false;
      }
    }
    return false;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    return value;
  }
  std::string_view skip(uint64_t count) {
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest_;
};

std::string opOfFile(const std::string& path) {
  constexpr uint64_t kModelGraph = 7, kGraphNode = 1, kNodeOpType = 4;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  std::string bytes = text.str();
  uint64_t number = 0;
  std::string_view part, node, op;
  for (Fields model(bytes); model.next(&number, &part);) {
    if (number != kModelGraph) continue;
    for (Fields graph(part); graph.next(&number, &node);) {
      if (number != kGraphNode) continue;
      for (Fields fields(node); fields.next(&number, &op);)
        if (number == kNodeOpType && op != "Constant") return std::string(op);
    }
  }
  return "(no node)";
}

Result<std::vector<hostops::HostValue>> readValues(const fs::path& folder, const std::string& stem,
                                                   const std::vector<ValueKind>& kinds) {
  std::vector<hostops::HostValue> values;
  for (size_t i = 0; i < kinds.size(); ++i) {
    fs::path file = folder / (stem + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(file)) break;
    LOCUTION_ASSIGN_OR_RETURN(hostops::HostValue value, frontend::readValueProto(file.string(), kinds[i]));
    values.push_back(std::move(value));
  }
  return values;
}

std::vector<ValueKind> inputKinds(const graph::Graph& graph) {
  std::vector<ValueKind> kinds;
  for (graph::ValueId v : graph.main().inputs) kinds.push_back(graph.type(v).kind);
  return kinds;
}

// As the file declares them: before inference the graph doesn't know.
std::vector<ValueKind> outputKinds(const frontend::ImportedModel& model) {
  std::vector<ValueKind> kinds;
  for (const auto& type : model.declaredOutputs) kinds.push_back(type ? type->kind : ValueKind::Tensor);
  return kinds;
}

// The inputs stay, unread.
void makeInputsConstant(graph::Graph& graph, const std::vector<hostops::HostValue>& inputs) {
  graph::Patch patch(graph);
  std::vector<graph::ValueId> ids = graph.main().inputs;
  for (size_t i = 0; i < ids.size() && i < inputs.size(); ++i)
    if (inputs[i].isTensor()) {
      std::string name = graph.value(ids[i]).name;
      patch.replaceUses(ids[i], patch.addConstant(name + ".value", inputs[i].tensor));
    }
}

// As a model exported with dynamic axes; the shapes come with the values.
void makeDimsDynamic(graph::Graph& graph) {
  graph::Patch patch(graph);
  for (graph::ValueId v : graph.main().inputs) {
    ValueType type = graph.type(v);
    if (type.kind != ValueKind::Tensor || !type.shape.isRanked()) continue;
    for (int64_t i = 0; i < type.shape.rank(); ++i)
      type.shape[i] = Dim::symbol(graph.value(v).name + "." + std::to_string(i));
    patch.setType(v, type);
  }
}

// What an executable does when it runs.
struct Work {
  std::string hosts;  ///< its host operators
  bool folded = true;
};

void addWork(const runtime::Executable& exe, Work* work) {
  auto addHost = [&](const std::string& name) { work->hosts += (work->hosts.empty() ? "" : " ") + name; };
  for (const runtime::Instruction& instruction : exe.instructions) {
    const auto* host = std::get_if<runtime::RunHostOp>(&instruction);
    if (host && host->op != "CheckIndexTuples") addHost(host->op);
    const auto* copy = std::get_if<runtime::CopySlot>(&instruction);
    work->folded =
        work->folded && copy && exe.slots[static_cast<size_t>(copy->from.index)].space == runtime::SlotSpace::Constant;
  }
  for (const runtime::Region& region : exe.regions) {
    work->folded = false;
    if (region.code) addWork(*region.code, work);
    // What is compiled once its shapes are known can't be looked into here.
    if (!region.code && region.compiler) addHost("(region)");
  }
}

CaseResult verdict(const runtime::Executable& exe) {
  Work work;
  addWork(exe, &work);
  if (!work.hosts.empty()) return {Outcome::Host, work.hosts};
  return {work.folded ? Outcome::Folded : Outcome::Compiled, ""};
}

Result<std::vector<hostops::HostValue>> runHere(const std::shared_ptr<const runtime::Executable>& exe,
                                                const std::vector<hostops::HostValue>& inputs, int threads) {
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program, runtime::Program::load(exe));
  runtime::Context context(program, runtime::ThreadPool::create(threads));
  for (size_t i = 0; i < inputs.size(); ++i) LOCUTION_RETURN_IF_ERROR(context.setInputValue(i, inputs[i]));
  LOCUTION_RETURN_IF_ERROR(context.run());
  std::vector<hostops::HostValue> outputs;
  for (size_t i = 0; i < exe->outputs.size(); ++i) outputs.push_back(context.outputValue(i));
  return outputs;
}

CaseResult runDataSet(const std::string& folder, const fs::path& data, const CaseOptions& options) {
  auto model = frontend::importModel(folder + "/model.onnx");
  if (!model.isOk()) return {Outcome::Refused, model.status().message()};
  graph::Graph& graph = model->graph;
  auto inputs = readValues(data, "input", inputKinds(graph));
  if (!inputs.isOk()) return {Outcome::Refused, inputs.status().message()};
  auto wanted = readValues(data, "output", outputKinds(*model));
  if (!wanted.isOk()) return {Outcome::Refused, wanted.status().message()};

  driver::CompileOptions compile = options.compile;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const hostops::HostValue& value = (*inputs)[i];
    if (value.isTensor() && graph.type(graph.main().inputs[i]).kind == ValueKind::Tensor)
      compile.inputValues[graph.value(graph.main().inputs[i]).name] = value.tensor;
  }
  if (options.dynamic) makeDimsDynamic(graph);
  if (options.constants) makeInputsConstant(graph, *inputs);
  auto compiled = driver::compileGraph(std::move(graph), compile);
  if (!compiled.isOk()) return {Outcome::Refused, compiled.status().message()};

  if (options.compileOnly) return verdict(*compiled->executable);
  std::vector<hostops::HostValue> outputs;
  if (options.emulator.empty()) {
    auto ran = runHere(compiled->executable, *inputs, compile.threads);
    if (!ran.isOk()) return {Outcome::Wrong, ran.status().message()};
    outputs = std::move(*ran);
  } else {
    auto ran = runEmulated(options.emulator, *compiled->executable, *inputs, compile.threads);
    if (!ran.isOk()) return {Outcome::Refused, ran.status().message()};
    if (!ran->failure.empty()) return {ran->crashed ? Outcome::Crashed : Outcome::Wrong, ran->failure};
    outputs = std::move(ran->outputs);
  }
  if (wanted->size() != outputs.size())
    return {Outcome::Wrong,
            "outputs: " + std::to_string(outputs.size()) + " instead of " + std::to_string(wanted->size())};
  for (size_t i = 0; i < wanted->size(); ++i) {
    Status equal = compareValues(outputs[i], (*wanted)[i], options.rtol, options.atol);
    if (!equal.isOk()) return {Outcome::Wrong, equal.withContext("output " + std::to_string(i)).message()};
  }
  return verdict(*compiled->executable);
}

}  // namespace

std::string caseOperator(const std::string& suite, const std::string& name) {
  std::string base = name;
  if (size_t at = name.find("_expanded"); at != std::string::npos && fs::exists(suite + "/" + name.substr(0, at)))
    base = name.substr(0, at);
  return opOfFile(suite + "/" + base + "/model.onnx");
}

CaseResult runCase(const std::string& folder, const CaseOptions& options) {
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().rfind("test_data_set_", 0) == 0) sets.push_back(entry.path());
  std::sort(sets.begin(), sets.end());
  CaseResult result{Outcome::Wrong, "no data"};
  for (const fs::path& set : sets) {
    result = runDataSet(folder, set, options);
    if (!passed(result.outcome)) break;
  }
  return result;
}

}  // namespace locution::conformance
