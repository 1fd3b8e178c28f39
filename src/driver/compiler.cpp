#include "driver/compiler.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/build.h"
#include "driver/cache.h"
#include "driver/evaluator.h"
#include "driver/graph_text.h"
#include "driver/lazy_region.h"
#include "driver/lower.h"
#include "driver/pipeline.h"
#include "driver/prepare.h"
#include "driver/scheduling.h"
#include "frontend/onnx/onnx_importer.h"
#include "generator/sentences.h"
#include "hostops/attrs.h"
#include "support/strings.h"
#include "targets/cpu/cpu_target.h"

namespace locution::driver {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

std::string compilerVersion() { return LOCUTION_VERSION; }

Result<TargetSpec> resolveTarget(const CompileOptions& options) {
  if (options.machineFile.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(TargetSpec target,
                              targets::cpu::makeTarget(options.triple, options.cpu, options.threads));
    target.strict = options.strict;
    target.hasFma = target.hasFma && !options.sameBits;
    return target;
  }
  std::ifstream file(options.machineFile, std::ios::binary);
  if (!file) return Status::error(options.machineFile + ": can't read the machine profile");
  std::ostringstream text;
  text << file.rdbuf();
  auto parsed = parseTarget(text.str());
  if (!parsed.isOk()) return parsed.status().withContext(options.machineFile);
  TargetSpec target = *parsed;
  if ((!options.cpu.empty() && options.cpu != "native") || !options.triple.empty()) {
    // The profile's rates, another instruction set.
    LOCUTION_ASSIGN_OR_RETURN(TargetSpec named, targets::cpu::makeTarget(options.triple, options.cpu, options.threads));
    named.l1Bytes = target.l1Bytes;
    named.l2Bytes = target.l2Bytes;
    named.l3Bytes = target.l3Bytes;
    named.peakGflops = target.peakGflops;
    named.readGbs = target.readGbs;
    target = named;
  }
  target.threads = options.threads;
  target.strict = options.strict;
  target.hasFma = target.hasFma && !options.sameBits;
  return target;
}

Session::Session(const CompileOptions& options, TargetSpec target) : options_(options), target_(std::move(target)) {}
Session::~Session() = default;

namespace {

Result<std::string> readSchedule(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return Status::error("--schedule " + file + ": can't be read");
  return text.str();
}

}  // namespace

Result<std::shared_ptr<Session>> Session::create(const CompileOptions& options) {
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec target, resolveTarget(options));
  std::shared_ptr<Session> s(new Session(options, std::move(target)));
  LOCUTION_ASSIGN_OR_RETURN(s->scheduling_, Scheduling::make(options, s->target_));
  if (!options.scheduleFile.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(std::string text, readSchedule(options.scheduleFile));
    LOCUTION_RETURN_IF_ERROR(s->scheduling_->prefer(text, options.scheduleFile));
  }
  s->compiler_ = targets::cpu::makeKernelCompiler(s->target_);
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec host, targets::cpu::makeTarget("", "native", 1));
  s->host_ = targets::cpu::makeKernelCompiler(host);
  s->packer_ = generator::makeBaseline();
  s->evaluator_ = std::make_unique<Evaluator>(*s->host_, *s->packer_, options.jobs > 0 ? options.jobs : 2);
  return s;
}

passes::RunOptions Session::passOptions() {
  passes::RunOptions out;
  out.disabled = options_.disabledPasses;
  out.dumpAfter = options_.dumpAfter;
  out.dump = options_.dump;
  out.timings = &timings_;
  return out;
}

Status Session::optimise(graph::Graph& graph) {
  passes::PassContext context;
  context.target = &target_;
  context.foldCapBytes = options_.foldCapBytes;
  context.evaluate = [this](const loop::Computation& c, const std::vector<Tensor>& inputs) {
    return evaluator_->evaluate(c, inputs);
  };
  Status s = runPipeline(graph, context, passOptions());
  warnings_.insert(warnings_.end(), context.warnings.begin(), context.warnings.end());
  if (s.isOk()) warnOfDeclarations(graph);
  return s;
}

// Nothing is inferred from what a file declares of its outputs, which is often wrong.
void Session::warnOfDeclarations(const graph::Graph& graph) {
  const std::vector<graph::ValueId>& outputs = graph.main().outputs;
  for (size_t i = 0; i < outputs.size() && i < declared_.size(); ++i) {
    const ValueType& is = graph.type(outputs[i]);
    if (!declared_[i] || !declared_[i]->shape.isRanked() || !is.shape.isRanked()) continue;
    const Shape& said = declared_[i]->shape;
    bool conflicts = said.rank() != is.shape.rank();
    for (int64_t d = 0; d < said.rank() && !conflicts; ++d)
      conflicts = said[d].isKnown() && is.shape[d].isKnown() && !(said[d] == is.shape[d]);
    if (conflicts)
      warnings_.push_back("output '" + graph.value(outputs[i]).name + "' is declared as " + declared_[i]->str() +
                          ", but is " + is.str());
  }
}

Status Session::optimiseRegion(graph::Graph& graph) {
  passes::PassContext context;
  context.target = &target_;
  context.foldCapBytes = options_.foldCapBytes;
  context.evaluate = [this](const loop::Computation& c, const std::vector<Tensor>& inputs) {
    return evaluator_->evaluate(c, inputs);
  };
  passes::RunOptions options;
  options.disabled = options_.disabledPasses;
  return runPipeline(graph, context, options);
}

Result<Lowered> Session::lower(const graph::Graph& graph, bool openInputs) {
  MakeRegion make = [this](graph::Graph region, const std::string& name) {
    return makeRegion(std::move(region), name);
  };
  return lowerGraph(graph, make, target_, openInputs);
}

Result<std::shared_ptr<const runtime::Executable>> Session::build(Lowered lowered) {
  BuildInputs in;
  in.compiler = compiler_.get();
  in.scheduler = &scheduler();
  in.evaluator = evaluator_.get();
  in.jobs = options_.jobs;
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Executable> exe, buildExecutable(std::move(lowered), in));
  exe->compilerVersion = compilerVersion();
  return std::shared_ptr<const runtime::Executable>(std::move(exe));
}

Result<std::shared_ptr<const runtime::Executable>> Session::compileRegion(graph::Graph graph) {
  LOCUTION_RETURN_IF_ERROR(optimiseRegion(graph));
  LOCUTION_ASSIGN_OR_RETURN(Lowered lowered, lower(graph));
  graph = graph::Graph();
  return build(std::move(lowered));
}

Result<std::shared_ptr<const runtime::Executable>> Session::compileOpenRegion(graph::Graph graph) {
  LOCUTION_RETURN_IF_ERROR(optimiseRegion(graph));
  LOCUTION_ASSIGN_OR_RETURN(Lowered lowered, lower(graph, true));
  bool isSmaller = std::any_of(lowered.steps.begin(), lowered.steps.end(), [](const Step& s) {
    const auto* region = std::get_if<RegionStep>(&s);
    return region ? region->kind != runtime::RegionKind::Call : !std::holds_alternative<CopyStep>(s);
  });
  graph = graph::Graph();
  if (!isSmaller) return std::shared_ptr<const runtime::Executable>();
  return build(std::move(lowered));
}

// Ahead of time where every shape is known. A branch whose shapes make no sense may never be taken: only a run can tell.
Result<RegionCode> Session::makeRegion(graph::Graph graph, const std::string& name) {
  RegionCode out;
  out.name = name;
  std::vector<std::string> open;
  const std::vector<graph::ValueId> needed = neededMainInputs(graph);
  for (graph::ValueId v : graph.main().inputs) {
    const ValueType& type = graph.type(v);
    if (type.kind == ValueKind::Tensor && !(type.shape.isRanked() && type.shape.isStatic()))
      open.push_back("the shape of '" + graph.value(v).name + "' (" + type.str() + ")");
    else if (std::find(needed.begin(), needed.end(), v) != needed.end())
      open.push_back("the value of '" + graph.value(v).name + "'");
  }
  if (open.empty()) {
    auto code = compileRegion(graph);
    if (code.isOk())
      out.code = *code;
    else
      out.open = code.status().message();
  } else {
    out.open = "only a run tells " + join(open, ", ");
  }
  if (open.empty() && !keepsGraphs_) return out;
  out.graph = std::make_shared<const graph::Graph>(std::move(graph));
  if (!open.empty()) out.compiler = std::make_shared<LazyRegion>(shared_from_this(), out.graph);
  if (!keepsGraphs_) out.graph = nullptr;
  return out;
}

Status Session::inferTypes(graph::Graph& graph) {
  passes::PassContext context;
  context.target = &target_;
  return passes::runPass(*passes::findPass("infer-shapes"), graph, context, passOptions());
}

Result<graph::Graph> Session::load(const std::string& path) {
  modelName_ = std::filesystem::path(path).stem().string();
  if (isGraphText(path)) {
    LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, readGraphText(path));
    Status s = specialise(graph);
    if (!s.isOk()) return s.withContext(path);
    return graph;
  }
  LOCUTION_ASSIGN_OR_RETURN(frontend::ImportedModel model, frontend::importModel(path));
  for (const std::string& w : model.warnings) warnings_.push_back(path + ": " + w);
  declared_ = std::move(model.declaredOutputs);
  externalFiles_ = std::move(model.externalFiles);
  Status s = specialise(model.graph);
  if (!s.isOk()) return s.withContext(path);
  return std::move(model.graph);
}

Result<Compiled> Session::compile(graph::Graph graph, const Progress& progress) {
  auto start = Clock::now();
  Compiled out;
  if (progress) progress("optimising the graph", 0.1);
  LOCUTION_RETURN_IF_ERROR(optimise(graph));
  for (const passes::PassTiming& t : timings_) out.times.push_back({t.name, t.seconds});
  std::string name = graph.name;
  std::map<std::string, std::string> metadata = graph.metadata;
  auto lowering = Clock::now();
  LOCUTION_ASSIGN_OR_RETURN(Lowered lowered, lower(graph));
  out.times.push_back({"lower", since(lowering)});
  graph = graph::Graph();  // constants now belong to `lowered` alone, which lets go of them as they are packed
  if (scheduling_->measures()) {
    auto measuring = Clock::now();
    LOCUTION_RETURN_IF_ERROR(prepareSchedules(lowered, progress));
    out.times.push_back({"measure", since(measuring)});
  }
  BuildInputs in;
  in.compiler = compiler_.get();
  in.scheduler = &scheduler();
  in.evaluator = evaluator_.get();
  in.jobs = options_.jobs;
  in.progress = progress;
  in.times = &out.times;
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Executable> exe, buildExecutable(std::move(lowered), in));
  requireFrozen(*exe);
  exe->modelName = name;
  exe->metadata = std::move(metadata);
  exe->compilerVersion = compilerVersion();
  out.executable = std::move(exe);
  out.warnings = warnings_;
  for (const std::string& w : scheduling_->warnings()) out.warnings.push_back(w);
  out.seconds = since(start);
  return out;
}

const generator::Scheduler& Session::scheduler() const { return scheduling_->scheduler(); }

Status Session::prepareSchedules(const Lowered& lowered, const Progress& progress) {
  return scheduling_->prepare(lowered, *compiler_, modelName_, progress);
}

void Session::requireFrozen(runtime::Executable& executable) const {
  for (runtime::Port& port : executable.inputs)
    if (std::find(frozen_.begin(), frozen_.end(), port.name) != frozen_.end()) {
      hostops::ByteWriter bytes;
      hostops::writeTensor(bytes, options_.inputValues.at(port.name));
      port.required = bytes.take();
    }
}

Result<Compiled> compileModel(const std::string& path, const CompileOptions& options, const Progress& progress) {
  auto start = Clock::now();
  if (progress) progress("reading " + path, 0);
  // A dump shows what the passes do, so they have to run.
  // What records hold and what is measured changes from one compilation to the next.
  const bool isCached =
      !options.cacheFolder.empty() && options.dumpAfter.empty() && Scheduling::isReproducible(options.scheduler);
  TargetSpec target;
  std::optional<ModelCache> cache;
  if (isCached) {
    LOCUTION_ASSIGN_OR_RETURN(target, resolveTarget(options));
    auto opened = ModelCache::open(path, options, target);
    if (!opened.isOk()) return opened.status();
    cache.emplace(std::move(*opened));
    if (std::optional<ModelCache::Entry> entry = cache->find()) {
      Compiled out{std::move(entry->executable), std::move(entry->warnings), {}, since(start), CacheUse::Hit};
      out.times.push_back({"cache", out.seconds});
      return out;
    }
  }
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(path));
  double load = since(start);
  auto compiled =
      session->isOpen() ? session->compileLazily(std::move(graph), path) : session->compile(std::move(graph), progress);
  if (!compiled.isOk()) return compiled.status().withContext(path);
  compiled->times.insert(compiled->times.begin(), {"load", load});
  if (cache && !session->isOpen()) {  // what is made at run time has no file
    auto storing = Clock::now();
    compiled->cache = CacheUse::Miss;
    Status s = cache->store(session->cacheInputs(), {compiled->executable, compiled->warnings});
    if (!s.isOk()) compiled->warnings.push_back("--cache " + options.cacheFolder + ": " + s.message());
    compiled->times.push_back({"cache", since(storing)});
  }
  compiled->seconds = since(start);
  return compiled;
}

Result<Compiled> compileGraph(graph::Graph graph, const CompileOptions& options, const Progress& progress) {
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
  LOCUTION_RETURN_IF_ERROR(session->specialise(graph));
  if (session->isOpen()) {
    std::string name = graph.name.empty() ? "the model" : graph.name;
    return session->compileLazily(std::move(graph), name);
  }
  return session->compile(std::move(graph), progress);
}

}  // namespace locution::driver
