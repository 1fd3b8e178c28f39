#include "train/forward.h"

#include "driver/compiler.h"
#include "runtime/context.h"

namespace locution::train {

Forward::Forward() = default;
Forward::~Forward() = default;

Result<std::unique_ptr<Forward>> Forward::create(graph::Graph graph, const driver::CompileOptions& compile) {
  std::unique_ptr<Forward> f(new Forward);
  LOCUTION_ASSIGN_OR_RETURN(driver::Compiled compiled, driver::compileGraph(std::move(graph), compile));
  LOCUTION_ASSIGN_OR_RETURN(f->program_, runtime::Program::load(compiled.executable));
  f->context_ = std::make_unique<runtime::Context>(f->program_, runtime::ThreadPool::create(compile.threads));
  return f;
}

Status Forward::run(const std::map<std::string, Tensor>& data, const std::map<std::string, Tensor>& parameters) {
  const std::vector<runtime::Port>& inputs = program_->executable().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto found = data.find(inputs[i].name);
    if (found == data.end()) {
      found = parameters.find(inputs[i].name);
      if (found == parameters.end()) return Status::error("nothing for the input '" + inputs[i].name + "'");
    }
    LOCUTION_RETURN_IF_ERROR(context_->setInput(i, found->second));
  }
  return context_->run();
}

const Tensor& Forward::output(const std::string& name) const {
  const std::vector<runtime::Port>& outputs = program_->executable().outputs;
  size_t i = 0;
  while (i < outputs.size() && outputs[i].name != name) ++i;
  LOCUTION_CHECK(i < outputs.size()) << "the graph has no output '" << name << "'";
  return context_->output(i);
}

}  // namespace locution::train
