#include "driver/verify_model.h"

#include "driver/build.h"
#include "driver/kernels.h"
#include "driver/lower.h"
#include "driver/prepare.h"
#include "driver/reference.h"
#include "hostops/host_op.h"
#include "runtime/context.h"

namespace locution::driver {

namespace {

constexpr double kMaxPoints = 2e6;  // of a kernel, in the interpreter: about a tenth of a second

// The values of step buffers while the steps run one by one.
class Stepper {
 public:
  Stepper(const Lowered& lowered, Evaluator& evaluator, uint64_t seed)
      : l_(lowered), evaluator_(evaluator), seed_(seed), values_(lowered.buffers.size()) {
    for (size_t b = 0; b < l_.buffers.size(); ++b)
      if (l_.buffers[b].constant.isValid()) values_[b] = l_.buffers[b].constant;
  }

  hostops::HostValue& value(size_t buffer) { return values_[buffer]; }

  Status run(const KernelStep& step, KernelVerdict* verdict) {
    const loop::Computation& c = step.computation;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      inputs.push_back(values_[step.inputs[i]].tensor.reshaped(loop::extents(*c.inputs[i])));
    LOCUTION_ASSIGN_OR_RETURN(std::vector<Tensor> have, evaluator_.evaluate(c, inputs));
    std::vector<Tensor> want;
    for (const Tensor& t : have) {
      Tensor copy(t.dtype(), t.dims());
      std::copy(t.raw(), t.raw() + t.bytes(), copy.raw());
      want.push_back(std::move(copy));
    }
    LOCUTION_ASSIGN_OR_RETURN(verdict->share, interpretReference(c, inputs, want, kMaxPoints, seed_));
    for (size_t i = 0; i < have.size() && verdict->difference.empty(); ++i)
      verdict->difference = differenceOf(want[i], have[i]);
    for (size_t i = 0; i < have.size(); ++i) values_[step.outputs[i]] = hostops::HostValue(std::move(have[i]));
    return Status::ok();
  }

  Status run(const HostStep& step) {
    const hostops::HostOp* op = hostops::findHostOp(step.op);
    LOCUTION_CHECK(op != nullptr) << step.op;
    LOCUTION_ASSIGN_OR_RETURN(hostops::Attrs attrs, hostops::parseAttrs(step.attrs));
    std::vector<hostops::HostValue> inputs, outputs(step.outputs.size());
    for (const auto& o : step.inputs)
      inputs.push_back(o.buffer < 0 ? hostops::HostValue() : values_[static_cast<size_t>(o.buffer)]);
    hostops::HostCall call{inputs, attrs, step.outputs.size()};
    LOCUTION_RETURN_IF_ERROR(hostops::runHostOp(*op, call, outputs).withContext(step.node));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (step.outputs[i].buffer >= 0) values_[static_cast<size_t>(step.outputs[i].buffer)] = std::move(outputs[i]);
    return Status::ok();
  }

 private:
  const Lowered& l_;
  Evaluator& evaluator_;
  uint64_t seed_;
  std::vector<hostops::HostValue> values_;
};

}  // namespace

Result<VerifyReport> verifyModel(const std::string& path, const CompileOptions& options,
                                 const std::map<std::string, Tensor>& inputs, const MakeInput& makeInput, uint64_t seed,
                                 const std::function<void(const KernelVerdict&)>& onKernel) {
  LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::create(options));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(path));
  Status s = session->optimise(graph);
  if (!s.isOk()) return s.withContext(path);
  auto lowered = lowerGraph(graph);
  if (!lowered.isOk()) return lowered.status().withContext(path);
  // The kernels as the executable has them: this target's code, this scheduler's plans, never the interpreter.
  Evaluator evaluator(session->compiler(), session->scheduler(), options.threads);
  evaluator.setInterpretSmall(false);
  Stepper stepper(*lowered, evaluator, seed);
  std::vector<Tensor> given;
  for (const PortInfo& p : lowered->inputs) {
    auto it = inputs.find(p.name);
    if (it != inputs.end()) {
      given.push_back(it->second);
    } else {
      LOCUTION_ASSIGN_OR_RETURN(Tensor made, makeInput(p.name, p.dtype, p.dims));
      given.push_back(std::move(made));
    }
    stepper.value(p.buffer) = hostops::HostValue(given.back());
  }
  VerifyReport report;
  for (const Step& step : lowered->steps) {
    if (const auto* k = std::get_if<KernelStep>(&step)) {
      KernelVerdict verdict;
      verdict.kernel = k->computation.name;
      verdict.op = k->op;
      LOCUTION_ASSIGN_OR_RETURN(ScheduledKernel scheduled,
                                scheduleKernel(k->computation, session->scheduler(), session->target()));
      verdict.plan = scheduled.sentence;
      LOCUTION_RETURN_IF_ERROR(stepper.run(*k, &verdict).withContext("kernel " + verdict.kernel));
      if (onKernel) onKernel(verdict);
      report.kernels.push_back(std::move(verdict));
    } else if (const auto* h = std::get_if<HostStep>(&step)) {
      LOCUTION_RETURN_IF_ERROR(stepper.run(*h));
    }
  }
  std::vector<PortInfo> outputs = lowered->outputs;
  BuildInputs in;
  in.compiler = &session->compiler();
  in.scheduler = &session->scheduler();
  in.evaluator = &session->evaluator();
  in.jobs = options.jobs;
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Executable> exe, buildExecutable(std::move(*lowered), in));
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program, runtime::Program::load(exe));
  runtime::Context context(program, runtime::ThreadPool::create(options.threads));
  for (size_t i = 0; i < given.size(); ++i) LOCUTION_RETURN_IF_ERROR(context.setInput(i, given[i]));
  LOCUTION_RETURN_IF_ERROR(context.run());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const hostops::HostValue& want = stepper.value(outputs[i].buffer);
    if (!want.isTensor() || !context.outputValue(i).isTensor()) continue;
    const Tensor& have = context.output(i);
    std::string problem = differenceOf(want.tensor.reshaped(have.dims()), have);
    if (!problem.empty()) report.outputProblems.push_back("output '" + outputs[i].name + "': " + problem);
  }
  return report;
}

}  // namespace locution::driver
