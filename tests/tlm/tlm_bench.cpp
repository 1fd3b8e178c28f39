// tlm_bench [MODEL [WEIGHTS]]: what deciding a schedule costs, kernel by kernel of a model: the space, the grammar alone, a prompt, and
// plans by the language model (of random weights where none are given). Medians over kernels, in microseconds.
// tlm_bench --profile [SHAPE]: the programs that decoding runs, kernel by kernel.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string_view>

#include "driver/compiler.h"
#include "driver/workloads.h"
#include "generator/random.h"
#include "generator/rules.h"
#include "generator/tlm/decoder.h"
#include "space/workload.h"
#include "tlm_kernels.h"

namespace locution::tests {
namespace {

using Clock = std::chrono::steady_clock;

struct Row {
  std::string name;
  std::vector<double> values = {};
  void add(double value) { values.push_back(value); }
  void print() {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    double sum = 0;
    for (double v : values) sum += v;
    std::printf("%-34s %9.1f %9.1f %9.1f\n", name.c_str(), values[values.size() / 2],
                sum / static_cast<double>(values.size()), values.back());
  }
};

/// The least of several, for about a tenth of a second: what else runs only adds.
double microseconds(const std::function<void()>& work) {
  double best = 1e300, spent = 0;
  for (int i = 0; i < 5 || (i < 200 && spent < 0.1); ++i) {
    const auto start = Clock::now();
    work();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, took);
    spent += took;
  }
  return best * 1e6;
}

/// Kernel by kernel of one program, on zeros.
int profile(const tlm::InferenceShape& shape) {
  const tlm::ModelConfig config;
  auto program = driver::compiledPrograms(config)(shape);
  if (!program.isOk()) return std::fprintf(stderr, "%s\n", program.status().message().c_str()), 1;
  const runtime::Executable& exe = (*program)->executable();
  runtime::Context context(*program, nullptr);
  for (size_t i = 0; i < exe.inputs.size(); ++i) (void)context.setInput(i, Tensor(DType::F32, exe.inputs[i].dims));
  for (int i = 0; i < 3; ++i) (void)context.run();
  const double whole = microseconds([&] { (void)context.run(); });
  context.setProfiling(true);
  constexpr int kRuns = 50;
  for (int i = 0; i < kRuns; ++i) (void)context.run();
  std::map<int32_t, std::pair<double, int>> byKernel;
  for (size_t i = 0; i < exe.instructions.size(); ++i)
    if (const auto* k = std::get_if<runtime::RunKernel>(&exe.instructions[i])) {
      byKernel[k->kernel].first += context.profile()[i].seconds / kRuns;
      ++byKernel[k->kernel].second;
    }
  std::printf("%s: %zu instructions, %.1f us\n", shape.name().c_str(), exe.instructions.size(), whole);
  for (const auto& [kernel, cost] : byKernel) {
    const runtime::KernelInfo& info = exe.kernels[static_cast<size_t>(kernel)];
    std::printf("  %8.2f us %3d x %-44s %8.0f flops  %s\n", cost.first * 1e6, cost.second, info.name.c_str(),
                info.flops, info.sentence.c_str());
  }
  return 0;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--profile") {
    for (const tlm::InferenceShape& shape : tlm::inferenceShapes(tlm::ModelConfig()))
      if (argc < 3 || shape.name() == argv[2]) (void)profile(shape);
    return 0;
  }
  driver::CompileOptions options;
  auto target = driver::resolveTarget(options);
  std::vector<loop::Computation> kernels;
  if (argc > 1) {
    auto workloads = driver::modelWorkloads(argv[1], options);
    if (!workloads.isOk()) return std::fprintf(stderr, "%s\n", workloads.status().message().c_str()), 1;
    for (driver::ModelWorkload& w : *workloads) kernels.push_back(std::move(w.workload.kernel));
  } else {
    kernels = smallKernels();
  }
  tlm::Weights weights = randomWeights(tlm::ModelConfig(), 1, 3);
  if (argc > 2) {
    auto read = tlm::readWeights(argv[2]);
    if (!read.isOk()) return std::fprintf(stderr, "%s\n", read.status().message().c_str()), 1;
    weights = std::move(*read);
  }
  const Model model(weights);
  tlm::Reader reader(model.network, model.programs);
  Row space{"space"}, hash{"workload hash"}, walk{"random walk"}, analytic{"analytic walk"}, words{"prompt words"},
      prompt{"prompt read"}, greedy{"greedy plan, space included"}, best{"best of 32, space included"},
      promptTokens{"tokens of a prompt"}, decisions{"decisions of a plan"}, token{"microseconds a decision, greedy"};
  double greedySum = 0, bestSum = 0;
  int unread = 0;
  for (const loop::Computation& kernel : kernels) {
    space.add(microseconds([&] { space::Space s(kernel, *target); }));
    const space::Space s(kernel, *target);
    hash.add(microseconds([&] { space::workloadHash(kernel); }));
    walk.add(microseconds([&] { generator::randomWalk(s, uint64_t{1}); }));
    analytic.add(microseconds([&] { generator::analyticWalk(s); }));
    const language::Prompt p = language::promptTokens(s);
    words.add(microseconds([&] { language::promptTokens(s); }));
    promptTokens.add(static_cast<double>(p.target.size() + p.workload.size()));
    if (reader.room(static_cast<int64_t>(p.target.size() + p.workload.size())) < 1) {
      ++unread;
      continue;
    }
    (void)reader.readPrompt(p.target, p.workload);
    const double read = microseconds([&] { (void)reader.readPrompt(p.target, p.workload); });
    prompt.add(read);
    auto plan = [&](int64_t sentences, bool wantsValues) {
      const space::Space own(kernel, *target);
      tlm::Decoding d;
      d.sentences = sentences;
      d.wantsValues = wantsValues;
      if (wantsValues) d.also = generator::analyticWalk(own).choices();
      return tlm::decode(reader, *model.network, own, d);
    };
    auto first = plan(1, false);
    if (!first.isOk()) return std::fprintf(stderr, "%s\n", first.status().message().c_str()), 1;
    unread += first->empty() ? 1 : 0;
    (void)plan(32, true);
    greedy.add(microseconds([&] { (void)plan(1, false); }));
    greedySum += greedy.values.back();
    if (!first->empty()) {
      const auto count = static_cast<double>(first->front().walk.choices().size());
      decisions.add(count);
      if (count > 1) token.add((greedy.values.back() - read - space.values.back()) / count);
    }
    best.add(microseconds([&] { (void)plan(32, true); }));
    bestSum += best.values.back();
  }
  std::printf("%zu kernels, %d too long\n%-34s %9s %9s %9s\n", kernels.size(), unread, "", "median", "mean", "most");
  for (Row* r : {&space, &hash, &walk, &analytic, &words, &prompt, &greedy, &best, &promptTokens, &decisions, &token})
    r->print();
  std::printf("all kernels: greedy %.1f ms, best of 32 %.1f ms\n", greedySum * 1e-3, bestSum * 1e-3);
  return 0;
}

}  // namespace
}  // namespace locution::tests

int main(int argc, char** argv) { return locution::tests::run(argc, argv); }
