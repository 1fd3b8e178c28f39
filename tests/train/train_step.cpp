// train_step LAYERS WIDTH HEADS WORDS LENGTH SENTENCES THREADS: a GPT-2 with seeded parameters and data, compiled as a training step.
// Then a line at a time on the standard input, each answered by one line:
//     given FILE     writes parameters and data (safetensors)
//     step RATE      one step; answers seconds and loss
//     result FILE    writes the last step's loss, norm and gradients, and the parameters after it
//     profile        one step with every kernel's time, slowest first
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "generator/tlm/safetensors.h"
#include "train/small_gpt2.h"
#include "train/step.h"

namespace locution {
namespace {

using Clock = std::chrono::steady_clock;

Status answer(train::TrainingStep& step, const train::SmallGpt2& model, const train::Tensors& data,
              const std::string& line) {
  std::istringstream words(line);
  std::string what, argument;
  words >> what >> argument;
  if (what == "given" || what == "result") {
    generator::tlm::SafeTensors file;
    file.tensors = step.state().parameters;
    if (what == "given") {
      file.tensors.insert(data.begin(), data.end());
    } else {
      for (const char* name : {"loss", "gradient.norm"}) file.tensors[name] = step.output(name);
      for (const std::string& name : model.names()) file.tensors["gradient." + name] = step.output("gradient." + name);
    }
    LOCUTION_RETURN_IF_ERROR(generator::tlm::writeSafeTensors(file, argument));
    std::cout << "written" << std::endl;
  } else if (what == "step") {
    const auto start = Clock::now();
    LOCUTION_RETURN_IF_ERROR(step.run(data, std::atof(argument.c_str())));
    std::cout << std::chrono::duration<double>(Clock::now() - start).count() << " " << step.loss() << std::endl;
  } else if (what == "profile") {
    LOCUTION_ASSIGN_OR_RETURN(std::string text, step.profile(data, 1e-3));
    std::cout << text << std::endl;
  } else {
    return Status::error("unknown command '" + what + "'");
  }
  return Status::ok();
}

Status run(const std::vector<int64_t>& n) {
  train::SmallGpt2 model;
  model.layers = n[0];
  model.width = n[1];
  model.heads = n[2];
  model.words = n[3];
  model.length = n[4];
  model.sentences = n[5];
  driver::CompileOptions compile;
  compile.threads = static_cast<int>(n[6]);
  train::StepOptions options;
  options.keepGradients = std::getenv("KEEP_GRADIENTS") != nullptr;
  const auto start = Clock::now();
  LOCUTION_ASSIGN_OR_RETURN(auto step,
                            train::TrainingStep::create(model.graph(), "loss", model.names(), options, compile));
  LOCUTION_RETURN_IF_ERROR(step->start(model.randomParameters(1, 0.05)));
  const train::Tensors data = model.randomData(1);
  std::cout << "ready " << std::chrono::duration<double>(Clock::now() - start).count() << " s, arena "
            << step->arenaBytes() / 1e6 << " MB, " << step->flops() / 1e9 << " Gflop" << std::endl;
  for (std::string line; std::getline(std::cin, line);) LOCUTION_RETURN_IF_ERROR(answer(*step, model, data, line));
  return Status::ok();
}

}  // namespace
}  // namespace locution

int main(int count, char** words) {
  std::vector<int64_t> numbers;
  for (int i = 1; i < count; ++i) numbers.push_back(std::atoll(words[i]));
  if (numbers.size() != 7) {
    std::fprintf(stderr, "usage: train_step LAYERS WIDTH HEADS WORDS LENGTH SENTENCES THREADS\n");
    return 2;
  }
  locution::Status s = locution::run(numbers);
  if (!s.isOk()) std::fprintf(stderr, "train_step: %s\n", s.message().c_str());
  return s.isOk() ? 0 : 1;
}
