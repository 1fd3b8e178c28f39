#include "train/step.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver/compiler.h"
#include "runtime/context.h"

namespace locution::train {

namespace {

Tensor copyOf(const Tensor& t) {
  Tensor out(t.dtype(), t.dims());
  if (t.bytes() > 0) std::memcpy(out.raw(), t.raw(), t.bytes());
  return out;
}

/// Places of one parameter's values among the program's inputs and outputs.
struct Ports {
  size_t in = 0, out = 0;
};

}  // namespace

struct TrainingStep::Impl {
  StepGraph names;
  AdamWOptions optimiser;
  std::shared_ptr<const runtime::Program> program;  // shared with the context
  std::unique_ptr<runtime::Context> context;
  std::map<std::string, size_t> data, outputs;
  size_t rate = 0, decay = 0, correction = 0;
  std::vector<Ports> ports;           // of parameters, first and second moments, one after the other
  std::vector<Tensor> current, next;  // in the order of `ports`
  Tensor rateValue = Tensor::scalarF32(0), decayValue = Tensor::scalarF32(0), correctionValue = Tensor::scalarF32(0);
  int64_t step = 0;

  const runtime::Executable& exe() const { return program->executable(); }

  /// The program's port of that name.
  static size_t find(const std::vector<runtime::Port>& list, const std::string& name) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].name == name) return i;
    LOCUTION_CHECK(false) << "the compiled step has no '" << name << "'";
    return 0;
  }

  void findPorts() {
    rate = find(exe().inputs, names.rate);
    decay = find(exe().inputs, names.decay);
    correction = find(exe().inputs, names.correction);
    auto add = [&](const std::vector<std::string>& in, const std::vector<std::string>& out) {
      for (size_t i = 0; i < in.size(); ++i) ports.push_back({find(exe().inputs, in[i]), find(exe().outputs, out[i])});
    };
    add(names.parameters, names.nextParameters);
    add(names.first, names.nextFirst);
    add(names.second, names.nextSecond);
    for (size_t i = 0; i < exe().inputs.size(); ++i) {
      const bool isOurs = i == rate || i == decay || i == correction ||
                          std::any_of(ports.begin(), ports.end(), [&](const Ports& p) { return p.in == i; });
      if (!isOurs) data[exe().inputs[i].name] = i;
    }
    for (size_t i = 0; i < exe().outputs.size(); ++i)
      if (std::none_of(ports.begin(), ports.end(), [&](const Ports& p) { return p.out == i; }))
        outputs[exe().outputs[i].name] = i;
  }

  Status take(const Tensors& given, const char* what, size_t from) {
    for (size_t i = 0; i < names.parameters.size(); ++i) {
      const std::string& name = names.parameters[i];
      auto found = given.find(name);
      if (found == given.end()) return Status::error(std::string(what) + " '" + name + "' is missing");
      const runtime::Port& port = exe().inputs[ports[from + i].in];
      const Tensor& t = found->second;
      if (t.dtype() != port.dtype || t.dims() != port.dims)
        return Status::error(std::string(what) + " '" + name + "' is " + ValueType{t.dtype(), t.shape()}.str() +
                             ", the graph wants " + ValueType{port.dtype, Shape::of(port.dims)}.str());
      current[from + i] = copyOf(t);
      next[from + i] = Tensor(t.dtype(), t.dims());
    }
    return Status::ok();
  }
};

TrainingStep::TrainingStep() : impl_(std::make_unique<Impl>()) {}
TrainingStep::~TrainingStep() = default;

Result<std::unique_ptr<TrainingStep>> TrainingStep::create(graph::Graph forward, const std::string& loss,
                                                           const std::vector<std::string>& parameters,
                                                           const StepOptions& options,
                                                           const driver::CompileOptions& compile) {
  std::unique_ptr<TrainingStep> step(new TrainingStep);
  Impl& m = *step->impl_;
  LOCUTION_ASSIGN_OR_RETURN(m.names, makeStepGraph(std::move(forward), loss, parameters, options, compile));
  LOCUTION_ASSIGN_OR_RETURN(driver::Compiled compiled, driver::compileGraph(std::move(m.names.graph), compile));
  LOCUTION_ASSIGN_OR_RETURN(m.program, runtime::Program::load(compiled.executable));
  m.context = std::make_unique<runtime::Context>(m.program, runtime::ThreadPool::create(compile.threads));
  m.optimiser = options.optimiser;
  m.findPorts();
  m.current.resize(m.ports.size());
  m.next.resize(m.ports.size());
  return step;
}

Status TrainingStep::start(const Tensors& parameters) {
  State s;
  s.parameters = parameters;
  for (const auto& [name, tensor] : impl_->names.initial) s.parameters.try_emplace(name, tensor);
  for (const auto& [name, tensor] : s.parameters) {
    s.first[name] = Tensor(tensor.dtype(), tensor.dims());
    s.second[name] = Tensor(tensor.dtype(), tensor.dims());
  }
  return resume(s);
}

Status TrainingStep::resume(const State& state) {
  Impl& m = *impl_;
  const size_t n = m.names.parameters.size();
  LOCUTION_RETURN_IF_ERROR(m.take(state.parameters, "the parameter", 0));
  LOCUTION_RETURN_IF_ERROR(m.take(state.first, "the first moment of", n));
  LOCUTION_RETURN_IF_ERROR(m.take(state.second, "the second moment of", 2 * n));
  m.step = state.step;
  return Status::ok();
}

State TrainingStep::state() const {
  const Impl& m = *impl_;
  const size_t n = m.names.parameters.size();
  State s;
  s.step = m.step;
  for (size_t i = 0; i < n; ++i) {
    s.parameters[m.names.parameters[i]] = copyOf(m.current[i]);
    s.first[m.names.parameters[i]] = copyOf(m.current[n + i]);
    s.second[m.names.parameters[i]] = copyOf(m.current[2 * n + i]);
  }
  return s;
}

Status TrainingStep::run(const Tensors& data, double learningRate) {
  Impl& m = *impl_;
  LOCUTION_CHECK(m.current.empty() || m.current[0].isValid()) << "start or resume comes first";
  for (const auto& [name, port] : m.data) {
    auto found = data.find(name);
    if (found == data.end()) return Status::error("no data for the input '" + name + "'");
    LOCUTION_RETURN_IF_ERROR(m.context->setInput(port, found->second));
  }
  const AdamWScalars scalars = adamWScalars(m.optimiser, learningRate, m.step + 1);
  m.rateValue.setElement(0, scalars.rate);
  m.decayValue.setElement(0, scalars.decay);
  m.correctionValue.setElement(0, scalars.correction);
  LOCUTION_RETURN_IF_ERROR(m.context->setInput(m.rate, m.rateValue));
  LOCUTION_RETURN_IF_ERROR(m.context->setInput(m.decay, m.decayValue));
  LOCUTION_RETURN_IF_ERROR(m.context->setInput(m.correction, m.correctionValue));
  for (size_t i = 0; i < m.ports.size(); ++i) {
    LOCUTION_RETURN_IF_ERROR(m.context->setInput(m.ports[i].in, m.current[i]));
    LOCUTION_RETURN_IF_ERROR(m.context->bindOutput(m.ports[i].out, m.next[i]));
  }
  LOCUTION_RETURN_IF_ERROR(m.context->run());
  std::swap(m.current, m.next);
  ++m.step;
  return Status::ok();
}

Result<std::string> TrainingStep::profile(const Tensors& data, double learningRate) {
  const runtime::Executable& exe = impl_->exe();
  const std::vector<runtime::InstructionProfile> before = impl_->context->profile();
  impl_->context->setProfiling(true);
  Status s = run(data, learningRate);
  impl_->context->setProfiling(false);
  LOCUTION_RETURN_IF_ERROR(s);
  struct Line {
    double seconds;
    const runtime::KernelInfo* kernel;
  };
  std::vector<Line> lines;
  double total = 0;
  for (size_t i = 0; i < exe.instructions.size(); ++i) {
    const double seconds = impl_->context->profile()[i].seconds - before[i].seconds;
    total += seconds;
    if (const auto* k = std::get_if<runtime::RunKernel>(&exe.instructions[i]))
      lines.push_back({seconds, &exe.kernels[static_cast<size_t>(k->kernel)]});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  std::string out;
  char text[128];
  std::snprintf(text, sizeof text, "%.3f ms in %zu instructions\n", total * 1e3, exe.instructions.size());
  out += text;
  for (const Line& l : lines) {
    std::snprintf(text, sizeof text, "%8.3f %8.1f %8.1f  ", l.seconds * 1e3, l.kernel->flops / l.seconds / 1e9,
                  l.kernel->bytes / l.seconds / 1e9);
    out += text + l.kernel->name + "  " + l.kernel->sentence + "\n";
  }
  return out;
}

const Tensor& TrainingStep::output(const std::string& name) const {
  auto found = impl_->outputs.find(name);
  LOCUTION_CHECK(found != impl_->outputs.end()) << "the step has no output '" << name << "'";
  return impl_->context->output(found->second);
}

float TrainingStep::loss() const { return static_cast<float>(output(impl_->names.loss).elementAsDouble(0)); }
int64_t TrainingStep::stepsDone() const { return impl_->step; }
int64_t TrainingStep::arenaBytes() const { return impl_->exe().arenaBytes; }
double TrainingStep::flops() const { return impl_->exe().flops; }

}  // namespace locution::train
