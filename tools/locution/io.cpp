#include "io.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "hostops/attrs.h"
#include "module.h"
#include "runtime/npy.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution::tools {

namespace {

using Clock = std::chrono::steady_clock;

bool endsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool isExecutableFile(const std::string& path) { return endsWith(path, ".loc"); }

}  // namespace

Result<hostops::HostValue> readValue(const std::string& path, ValueKind kind) {
  if (endsWith(path, ".npy")) {
    LOCUTION_ASSIGN_OR_RETURN(Tensor t, runtime::readNpy(path));
    return hostops::HostValue(std::move(t));
  }
  if (endsWith(path, ".pb")) {
    LOCUTION_ASSIGN_OR_RETURN(const CompilerModule* compiler, compilerModule());
    return compiler->readProto(path, kind);
  }
  return Status::error(path + ": an input file ends in .npy or .pb");
}

Result<Tensor> randomTensor(const std::string& name, DType dtype, const std::vector<int64_t>& dims, uint64_t seed) {
  if (dtype == DType::String)
    return Status::error("input '" + name + "' holds strings, which can't be random: give a file");
  if (dtypeClass(dtype) == DTypeClass::Complex)
    return Status::error("input '" + name + "' is complex, which can't be random: give a file");
  Tensor t(dtype, dims);
  std::mt19937_64 rng(hashText(name, seed));
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (isFloat(dtype))
      t.setElement(i, normal(rng));
    else
      t.setElementInt(i, static_cast<int64_t>(rng() & 1));
  }
  return t;
}

Status writeText(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(part, path, error);
  return file && !error ? Status::ok() : Status::error(path + ": can't write");
}

std::string portText(const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
  std::vector<std::string> parts;
  for (int64_t d : dims) parts.push_back(d < 0 ? "?" : std::to_string(d));
  return name + " " + std::string(dtypeName(dtype)) + " " + (parts.empty() ? "scalar" : join(parts, "x"));
}

Status readGivenInputs(const Options& options, GivenInputs* given) {
  for (const std::string& text : options.inputs) {
    size_t eq = text.find('=');
    if (eq == std::string::npos) return Status::error("--input " + text + ": want NAME=FILE or NAME=random");
    std::string name = text.substr(0, eq), file = text.substr(eq + 1);
    if (given->count(name)) return Status::error("--input " + name + ": given twice");
    if (file == "random") continue;
    LOCUTION_ASSIGN_OR_RETURN(hostops::HostValue value, readValue(file, ValueKind::Tensor));
    (*given)[name] = std::move(value);
  }
  return Status::ok();
}

Result<Model> openModel(const Options& options, GivenInputs* given) {
  LOCUTION_RETURN_IF_ERROR(readGivenInputs(options, given));
  Model model;
  auto start = Clock::now();
  if (isExecutableFile(options.model)) {
    LOCUTION_ASSIGN_OR_RETURN(model.program, runtime::Program::loadFile(options.model));
    model.loadSeconds = std::chrono::duration<double>(Clock::now() - start).count();
    return model;
  }
  LOCUTION_ASSIGN_OR_RETURN(const CompilerModule* compiler, compilerModule());
  return compiler->openOnnx(options, given);
}

Status bindInputs(const Options& options, const GivenInputs& given, const runtime::Program& program,
                  runtime::Context& context) {
  const auto& ports = program.executable().inputs;
  auto describePorts = [&] {
    std::vector<std::string> names;
    for (const runtime::Port& p : ports) names.push_back(portText(p.name, p.dtype, p.dims));
    return names.empty() ? std::string("none") : join(names, "; ");
  };
  for (const std::string& text : options.inputs) {
    std::string name = text.substr(0, text.find('='));
    if (std::none_of(ports.begin(), ports.end(), [&](const runtime::Port& p) { return p.name == name; }) &&
        !program.executable().metadata.count("locution.input." + name))
      return Status::error(options.model + ": no input is named '" + name + "' (inputs: " + describePorts() + ")");
  }
  std::vector<std::string> random;
  for (size_t i = 0; i < ports.size(); ++i) {
    auto it = given.find(ports[i].name);
    if (it != given.end()) {
      LOCUTION_RETURN_IF_ERROR(context.setInputValue(i, it->second).withContext(options.model));
      continue;
    }
    if (!ports[i].required.empty()) {
      hostops::ByteReader bytes(ports[i].required);
      LOCUTION_RETURN_IF_ERROR(context.setInput(i, hostops::readTensor(bytes)));
      continue;
    }
    if (ports[i].kind != ValueKind::Tensor)
      return Status::error("input '" + ports[i].name + "' is not a tensor: give a .pb file");
    LOCUTION_ASSIGN_OR_RETURN(Tensor t, randomTensor(ports[i].name, ports[i].dtype, ports[i].dims, options.seed));
    LOCUTION_RETURN_IF_ERROR(context.setInput(i, std::move(t)));
    random.push_back(ports[i].name);
  }
  if (!random.empty())
    std::fprintf(stderr, "random input%s: %s (seed %llu)\n", random.size() > 1 ? "s" : "", join(random, ", ").c_str(),
                 static_cast<unsigned long long>(options.seed));
  return Status::ok();
}

Status writeOutputs(const Options& options, const runtime::Program& program, const runtime::Context& context) {
  if (options.outputDir.empty()) return Status::ok();
  if (options.outputFormat != "npy" && options.outputFormat != "pb")
    return Status::error("--output-format " + options.outputFormat + ": want npy or pb");
  std::error_code error;
  std::filesystem::create_directories(options.outputDir, error);
  if (error) return Status::error(options.outputDir + ": " + error.message());
  const auto& ports = program.executable().outputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string path = options.outputDir + "/output_" + std::to_string(i) + "." + options.outputFormat,
                part = path + ".part";
    Status s;
    if (options.outputFormat == "pb") {
      LOCUTION_ASSIGN_OR_RETURN(const CompilerModule* compiler, compilerModule());
      s = compiler->writeProto(part, ports[i].name, context.outputValue(i), ports[i].kind);
    } else if (context.outputValue(i).isTensor())
      s = runtime::writeNpy(part, context.output(i));
    else
      s = Status::error("output '" + ports[i].name + "' is not a tensor: use --output-format pb");
    if (s.isOk()) std::filesystem::rename(part, path, error);
    if (s.isOk() && error) s = Status::error(path + ": " + error.message());
    if (!s.isOk()) {
      std::filesystem::remove(part, error);
      return s;
    }
  }
  return Status::ok();
}

}  // namespace locution::tools
