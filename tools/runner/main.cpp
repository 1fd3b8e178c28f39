// locution-runner: runs a .loc file with nothing but the runtime behind it: no compiler, no LLVM, no protobuf.
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hostops/philox.h"
#include "runtime/context.h"
#include "runtime/npy.h"
#include "runtime/values.h"
#include "support/hash.h"

namespace {

using namespace locution;

constexpr const char* kUsage =
    R"(usage: locution-runner MODEL.loc [--input NAME=FILE.npy|random] [--threads N] [--output-dir DIR]
                       [--input-values FILE] [--output-values FILE] [--repeat N] [--profile] [--seed N]
Runs a compiled model and prints a line an output. Inputs that are not given are random. Outputs are written to
DIR/output_0.npy, output_1.npy, ... in the model's order. A file of values holds all inputs or outputs at once, strings
and sequences too (src/runtime/values.h).
)";

struct Options {
  std::string model, outputDir, inputValues, outputValues;
  std::map<std::string, std::string> inputs;
  int64_t threads = 1, repeat = 1, seed = 0;
  bool profile = false;
};

Status parseCount(std::string_view flag, std::string_view text, int64_t least, int64_t most, int64_t* out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end == text.data() + text.size() && *out >= least && *out <= most) return Status::ok();
  return Status::error(std::string(flag) + " takes a number from " + std::to_string(least) + " to " +
                       std::to_string(most) + ", not \"" + std::string(text) + "\"");
}

Result<Options> parseOptions(const std::vector<std::string>& arguments) {
  Options out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i], value;
    if (flag == "--profile") {
      out.profile = true;
      continue;
    }
    if (flag.rfind("--", 0) != 0) {
      if (!out.model.empty()) return Status::error("more than one model: " + out.model + " and " + flag);
      out.model = flag;
      continue;
    }
    if (size_t at = flag.find('='); at != std::string::npos) {
      value = flag.substr(at + 1);
      flag = flag.substr(0, at);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return Status::error(flag + " needs a value");
    }
    if (flag == "--input") {
      size_t at = value.rfind('=');
      if (at == std::string::npos || at == 0) return Status::error("--input takes NAME=FILE, not \"" + value + "\"");
      out.inputs[value.substr(0, at)] = value.substr(at + 1);
    } else if (flag == "--output-dir") {
      out.outputDir = value;
    } else if (flag == "--input-values") {
      out.inputValues = value;
    } else if (flag == "--output-values") {
      out.outputValues = value;
    } else if (flag == "--threads") {
      LOCUTION_RETURN_IF_ERROR(parseCount(flag, value, 1, 1024, &out.threads));
    } else if (flag == "--repeat") {
      LOCUTION_RETURN_IF_ERROR(parseCount(flag, value, 1, 1000000000, &out.repeat));
    } else if (flag == "--seed") {
      LOCUTION_RETURN_IF_ERROR(parseCount(flag, value, 0, INT64_MAX, &out.seed));
    } else {
      return Status::error("unknown option " + flag);
    }
  }
  if (out.model.empty()) return Status::error("no model is given");
  return out;
}

Result<Tensor> randomInput(const runtime::Port& port, int64_t seed) {
  if (port.dtype == DType::String || port.kind != ValueKind::Tensor)
    return Status::error("input \"" + port.name + "\" can't be random: give it with --input");
  for (int64_t d : port.dims)
    if (d < 0) return Status::error("input \"" + port.name + "\" has no fixed shape: give it with --input");
  Tensor t(port.dtype, port.dims);
  hostops::Philox random(hashText(port.name, static_cast<uint64_t>(seed)));
  for (int64_t i = 0; i < t.elements(); ++i) {
    auto n = static_cast<uint64_t>(i);
    if (isFloat(t.dtype()) || dtypeClass(t.dtype()) == DTypeClass::Complex)
      t.setElement(i, random.normal(n));
    else
      t.setElementInt(i, random.uniform(n) < 0.5 ? 0 : 1);
  }
  return t;
}

Status setAllInputs(runtime::Context& context, const runtime::Executable& exe, const std::string& path) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<hostops::HostValue> values, runtime::readValues(path));
  if (values.size() != exe.inputs.size())
    return Status::error(path + " holds " + std::to_string(values.size()) + " values; the model has " +
                         std::to_string(exe.inputs.size()) + " inputs");
  for (size_t i = 0; i < values.size(); ++i) LOCUTION_RETURN_IF_ERROR(context.setInputValue(i, std::move(values[i])));
  return Status::ok();
}

Status setInputs(runtime::Context& context, const runtime::Executable& exe, Options& options) {
  if (!options.inputValues.empty()) return setAllInputs(context, exe, options.inputValues);
  for (size_t i = 0; i < exe.inputs.size(); ++i) {
    const runtime::Port& port = exe.inputs[i];
    auto given = options.inputs.find(port.name);
    bool isRandom = given == options.inputs.end() || given->second == "random";
    if (given == options.inputs.end()) std::printf("input %s is random\n", port.name.c_str());
    auto tensor = isRandom ? randomInput(port, options.seed) : runtime::readNpy(given->second);
    if (!tensor.isOk()) return tensor.status();
    LOCUTION_RETURN_IF_ERROR(context.setInput(i, std::move(*tensor)));
    if (given != options.inputs.end()) options.inputs.erase(given);
  }
  if (options.inputs.empty()) return Status::ok();
  std::string names;
  for (const runtime::Port& port : exe.inputs) names += (names.empty() ? "" : ", ") + port.name;
  return Status::error("the model has no input \"" + options.inputs.begin()->first + "\"; it has " +
                       (names.empty() ? "none" : names));
}

void printOutput(const std::string& name, const Tensor& t) {
  std::string shape;
  for (int64_t d : t.dims()) shape += (shape.empty() ? "" : "x") + std::to_string(d);
  std::printf("output %s %s[%s]", name.c_str(), std::string(dtypeName(t.dtype())).c_str(), shape.c_str());
  if (t.dtype() != DType::String && t.elements() > 0) {
    double low = HUGE_VAL, high = -HUGE_VAL, sum = 0;
    for (int64_t i = 0; i < t.elements(); ++i) {
      double x = t.elementAsDouble(i);
      low = std::fmin(low, x);
      high = std::fmax(high, x);
      sum += x;
    }
    std::printf(" min %g max %g mean %g", low, high, sum / static_cast<double>(t.elements()));
  }
  std::printf("\n");
}

void printProfile(const runtime::Context& context, const runtime::Executable& exe) {
  std::map<std::string, runtime::InstructionProfile> byName;
  for (size_t i = 0; i < exe.instructions.size(); ++i) {
    const runtime::Instruction& instruction = exe.instructions[i];
    const auto* kernel = std::get_if<runtime::RunKernel>(&instruction);
    const auto* host = std::get_if<runtime::RunHostOp>(&instruction);
    std::string name = kernel ? exe.kernels[static_cast<size_t>(kernel->kernel)].name
                       : host ? host->op
                       : std::holds_alternative<runtime::RunRegion>(instruction) ? "region"
                                                                                 : "copy or check";
    byName[name].seconds += context.profile()[i].seconds;
    byName[name].runs += context.profile()[i].runs;
  }
  for (const auto& [name, p] : byName)
    std::printf("%10.3f ms  %6lld runs  %s\n", p.seconds * 1e3, static_cast<long long>(p.runs), name.c_str());
}

Status run(Options options) {
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](Clock::time_point from) {
    return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
  };
  Clock::time_point from = Clock::now();
  auto program = runtime::Program::loadFile(options.model);
  if (!program.isOk()) return program.status();
  const runtime::Executable& exe = (*program)->executable();
  double loaded = milliseconds(from);
  runtime::Context context(*program, runtime::ThreadPool::create(static_cast<int>(options.threads)));
  LOCUTION_RETURN_IF_ERROR(setInputs(context, exe, options));
  context.setProfiling(options.profile);
  double first = 0, best = HUGE_VAL;
  for (int64_t i = 0; i < options.repeat; ++i) {
    from = Clock::now();
    LOCUTION_RETURN_IF_ERROR(context.run());
    double time = milliseconds(from);
    if (i == 0) first = time;
    best = std::fmin(best, time);
  }
  if (!options.outputDir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.outputDir, error);
    if (error) return Status::error("cannot make " + options.outputDir + ": " + error.message());
  }
  if (!options.outputValues.empty()) {
    std::vector<hostops::HostValue> values;
    for (size_t i = 0; i < exe.outputs.size(); ++i) values.push_back(context.outputValue(i));
    LOCUTION_RETURN_IF_ERROR(runtime::writeValues(options.outputValues, values));
  }
  for (size_t i = 0; i < exe.outputs.size(); ++i) {
    const hostops::HostValue& value = context.outputValue(i);
    if (!value.isTensor()) {
      std::printf("output %s is a sequence of %zu tensors\n", exe.outputs[i].name.c_str(), value.sequence.size());
      continue;
    }
    printOutput(exe.outputs[i].name, value.tensor);
    if (options.outputDir.empty()) continue;
    LOCUTION_RETURN_IF_ERROR(
        runtime::writeNpy(options.outputDir + "/output_" + std::to_string(i) + ".npy", value.tensor));
  }
  std::printf("load %.3f ms, first run %.3f ms", loaded, first);
  if (options.repeat > 1) std::printf(", best of %lld %.3f ms", static_cast<long long>(options.repeat), best);
  std::printf("\n");
  if (options.profile) printProfile(context, exe);
  return Status::ok();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    auto options = parseOptions(arguments);
    if (!options.isOk()) {
      std::fprintf(stderr, "locution-runner: %s\n%s", options.status().message().c_str(), kUsage);
      return 1;
    }
    Status status = run(std::move(*options));
    if (status.isOk()) return 0;
    std::fprintf(stderr, "locution-runner: %s\n", status.message().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "locution-runner: %s\n", e.what());
  }
  return 1;
}
