// How fast plans are measured, how well two measurements of one plan agree, and whether a kernel takes as long as within its model.
//     measure_bench MODEL [THREADS [PLANS-A-KERNEL [random]]]
// A line a kernel: its analytic plan and variations of it, or plans drawn from the kernel's space, in a batch, twice. The ratio of a plan's two ratios says how repeatable they are.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "generator/random.h"
#include "generator/scheduler.h"
#include "model_kernels.h"
#include "runtime/context.h"
#include "tune/measure.h"

namespace {

using namespace locution;  // NOLINT: a program
using Clock = std::chrono::steady_clock;

constexpr double kNear = 1.1;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of all workers so far.
double workersSeconds() {
  rusage u{};
  getrusage(RUSAGE_CHILDREN, &u);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

std::vector<schedule::Plan> walksOf(const loop::Computation& kernel, const TargetSpec& target, size_t count) {
  const space::Space space(kernel, target);
  std::vector<schedule::Plan> out;
  for (uint64_t seed = 1; out.size() < count && seed <= 4 * count; ++seed) {
    schedule::Plan plan = generator::randomWalk(space, seed).plan();
    if (std::find(out.begin(), out.end(), plan) == out.end()) out.push_back(std::move(plan));
  }
  return out;
}

// Milliseconds of each kernel within a run of the model, by name: medians of profiles.
std::map<std::string, double> profileOf(const std::string& path, const driver::CompileOptions& options) {
  std::map<std::string, double> out;
  auto compiled = driver::compileModel(path, options);
  if (!compiled) return out;
  auto program = runtime::Program::load(compiled->executable);
  if (!program) return out;
  runtime::Context context(*program, runtime::ThreadPool::create(options.threads));
  const runtime::Executable& exe = *compiled->executable;
  for (size_t i = 0; i < exe.inputs.size(); ++i) {
    Tensor t(exe.inputs[i].dtype, exe.inputs[i].dims);
    for (int64_t k = 0; k < t.elements() && isFloat(t.dtype()); ++k) t.setElement(k, std::sin(static_cast<double>(k)));
    (void)context.setInput(i, t);
  }
  std::map<std::string, std::vector<double>> samples;
  context.setProfiling(true);
  std::vector<runtime::InstructionProfile> before;
  for (int run = 0; run < 25; ++run) {
    if (!context.run().isOk()) return out;
    for (size_t i = 0; i < exe.instructions.size(); ++i) {
      const auto* k = std::get_if<runtime::RunKernel>(&exe.instructions[i]);
      if (!k) continue;
      const double seconds = context.profile()[i].seconds - (before.empty() ? 0 : before[i].seconds);
      std::string name = exe.kernels[static_cast<size_t>(k->kernel)].name;
      if (run > 4) samples[name].push_back(seconds * 1e3);
    }
    before = context.profile();
  }
  for (auto& [name, list] : samples) {
    const std::string packed = ".pack";
    std::string of =
        name.size() > packed.size() && name.ends_with(packed) ? name.substr(0, name.size() - packed.size()) : name;
    out[of] += quantile(list, 0.5);
  }
  return out;
}

int run(int argc, char** argv) {
  driver::CompileOptions options;
  options.threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const bool random = argc > 4 && std::string(argv[4]) == "random";
  const size_t each = argc > 3 ? static_cast<size_t>(std::atoi(argv[3])) : 16;
  auto model = tune::kernelsOf(argv[1], options);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 1;
  }
  const std::map<std::string, double> profile = profileOf(argv[1], options);
  tune::Measurer measurer(model->session->compiler(), {});
  size_t candidates = 0;
  double measuring = 0, opening = 0, processor = 0, compiling = 0;
  std::vector<double> compileMs;
  std::vector<double> repeated, near, incumbents, agreement;
  std::map<std::string, size_t> outcomes;
  for (size_t k = 0; k < model->kernels.size(); ++k) {
    const loop::Computation& c = model->kernels[k].computation;
    const schedule::Plan analytic = model->session->scheduler().propose(c, model->session->target());
    std::vector<schedule::Plan> plans =
        random ? walksOf(c, model->session->target(), each) : tune::variationsOf(analytic);
    plans.insert(plans.begin(), analytic);
    plans.resize(std::min(plans.size(), each));
    Clock::time_point start = Clock::now();
    auto bench = measurer.open(c, analytic);
    opening += since(start);
    if (!bench) {
      std::printf("%-28s %s\n", c.name.c_str(), bench.status().message().c_str());
      continue;
    }
    std::vector<std::vector<tune::Measurement>> runs;
    for (int run = 0; run < 2; ++run) {
      start = Clock::now();
      const double before = workersSeconds();
      auto made = (*bench)->measure(plans);
      measuring += since(start);
      processor += workersSeconds() - before;
      if (!made) {
        std::printf("%-28s %s\n", c.name.c_str(), made.status().message().c_str());
        break;
      }
      candidates += plans.size();
      runs.push_back(std::move(*made));
    }
    if (runs.size() < 2) continue;
    double best = INFINITY;
    for (size_t i = 0; i < plans.size(); ++i) {
      const tune::Measurement &a = runs[0][i], &b = runs[1][i];
      for (const auto& r : {a, b}) {
        ++outcomes[std::string(tune::outcomeName(r.outcome)) + (r.abandoned ? ", abandoned" : "")];
        if (r.compileMs > 0) compileMs.push_back(r.compileMs);
        compiling += r.compileMs * 1e-3;
      }
      if (a.outcome != tune::Outcome::Ok && a.outcome != tune::Outcome::Illegal)
        std::printf("%s: %s: %s\n", std::string(tune::outcomeName(a.outcome)).c_str(), a.reason.c_str(),
                    plans[i].str().c_str());
      if (a.ratio <= 0 || b.ratio <= 0 || a.abandoned || b.abandoned) continue;
      best = std::min({best, a.ratio, b.ratio});
      repeated.push_back(std::fabs(std::log(a.ratio / b.ratio)));
      if (std::min(a.ratio, b.ratio) < kNear) near.push_back(repeated.back());
    }
    const tune::Measurement& self = runs[0][0];
    incumbents.push_back(std::fabs(std::log(self.ratio)));
    double within = 0;
    int named = 0;
    for (const auto& [name, index] : model->byName)
      if (index == k && profile.count(name) > 0) {
        within += profile.at(name);
        ++named;
      }
    if (named > 0) within /= named;
    if (within > 0) agreement.push_back(self.seconds * 1e3 / within);
    std::printf("%-28s %8.4f ms (%2zu samples, spread %4.1f %%), in the model %8.4f: %5.3f; itself %.3f, best %.3f\n",
                c.name.c_str(), self.seconds * 1e3, self.samples.size(), self.spread * 100, within,
                within > 0 ? self.seconds * 1e3 / within : 0, self.ratio, best);
    std::fflush(stdout);
  }
  std::printf(
      "\n%zu candidates in %.2f s: %.1f a second (opening %.2f s more); compilation: median %.2f ms, 90 %% %.2f ms\n",
      candidates, measuring, static_cast<double>(candidates) / measuring, opening, quantile(compileMs, 0.5),
      quantile(compileMs, 0.9));
  const double eachMs = 1e3 / static_cast<double>(std::max<size_t>(candidates, 1));
  std::printf(
      "processor time of a candidate: %.2f ms to compile, %.2f ms for the rest; with two cores to itself that is %.1f "
      "a second\n",
      compiling * eachMs, (processor - compiling) * eachMs, 1e3 / ((compiling / 2 + processor - compiling) * eachMs));
  for (const auto& [name, count] : outcomes) std::printf("%s: %zu  ", name.c_str(), count);
  std::printf(
      "\nrepeated, |log ratio| median and 95 %%: %.4f %.4f; of %zu that take less than %.2f of the incumbent's time: "
      "%.4f %.4f\n",
      quantile(repeated, 0.5), quantile(repeated, 0.95), near.size(), kNear, quantile(near, 0.5), quantile(near, 0.95));
  std::printf("the incumbent against itself: %.4f %.4f\n", quantile(incumbents, 0.5), quantile(incumbents, 0.95));
  std::printf("measured / in the model: %.3f %.3f %.3f (10, 50, 90 %%)\n", quantile(agreement, 0.1),
              quantile(agreement, 0.5), quantile(agreement, 0.9));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: measure_bench MODEL [THREADS [PLANS-A-KERNEL [random]]]\n");
    return 1;
  }
  return run(argc, argv);
}
