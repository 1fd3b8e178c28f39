// `locution train`: the Tensor Language Model learns from records of measured sentences.
#include <cstdio>

#include "commands.h"
#include "driver/held_out.h"
#include "generator/tlm/weights.h"
#include "long_run.h"
#include "train/tlm_training.h"

namespace locution::tools {

namespace {

std::string factsText(const train::TlmFacts& f) {
  char text[512];
  std::snprintf(
      text, sizeof text,
      "%lld sentences of %lld workloads (%lld sentences held back, %lld left out), read in %.1f s\n"
      "%lld sentences in %lld x %lld tokens and %lld decisions a step, %lld steps an epoch, compiled in %.1f s\n",
      static_cast<long long>(f.sentences), static_cast<long long>(f.workloads),
      static_cast<long long>(f.heldOutSentences), static_cast<long long>(f.leftOut), f.readSeconds,
      static_cast<long long>(f.shape.sentences), static_cast<long long>(f.shape.lines),
      static_cast<long long>(f.shape.length), static_cast<long long>(f.shape.decisions),
      static_cast<long long>(f.stepsPerEpoch), f.compileSeconds);
  std::string out = text;
  if (f.firstStep > 0) out += "goes on after step " + std::to_string(f.firstStep) + "\n";
  return out;
}

std::string progressText(const train::TlmProgress& p) {
  char text[256];
  std::snprintf(text, sizeof text, "step %lld of %lld: loss %.4f, %.4f a decision, accuracy %.1f %%",
                static_cast<long long>(p.step), static_cast<long long>(p.steps), p.loss, p.policy, p.accuracy * 100);
  std::string out = text;
  if (p.heldOutPolicy && p.heldOutAccuracy) {
    std::snprintf(text, sizeof text, "; held back %.4f, %.1f %%", *p.heldOutPolicy, *p.heldOutAccuracy * 100);
    out += text;
  }
  std::snprintf(text, sizeof text, "; %.0f tokens/s, %s left", p.tokensPerSecond, duration(p.secondsLeft).c_str());
  return out + text;
}

}  // namespace

Status trainCommand(const Options& options) {
  if (options.recordPlaces.empty() && options.drawn < 1)
    return Status::error("want --records with measured sentences, or --drawn N networks, to learn from");
  if (options.outputDir.empty()) return Status::error("--output-dir: want a folder for the weights");
  for (auto [name, value] : {std::pair{"--steps", options.steps},
                             {"--sentences", options.batch},
                             {"--group", options.group},
                             {"--every", options.every},
                             {"--layers", options.layers},
                             {"--width", options.width},
                             {"--heads", options.heads}})
    if (value < 1) return Status::error(std::string(name) + ": at least 1");
  if (options.width % options.heads != 0) return Status::error("--width: want a multiple of --heads");
  if (options.lora < 0 || (options.lora > 0 && options.from.empty()))
    return Status::error("--lora: want a rank of at least 1, and --from WEIGHTS that it is for");
  if (!(options.validation >= 0 && options.validation < 1)) return Status::error("--validation: want 0 to 1");
  train::TlmTraining t;
  LOCUTION_ASSIGN_OR_RETURN(t.compile, compileOptions(options));
  t.compile.scheduler = "analytic";
  t.drawn.networks = options.drawn;
  t.drawn.seed = options.seed;
  LOCUTION_ASSIGN_OR_RETURN(std::vector<VirtualTarget> targets, virtualTargets(options));
  for (const VirtualTarget& target : targets) {
    driver::CompileOptions& own = t.drawn.targets.emplace_back(t.compile);
    own.cpu = target.cpu;
    own.threads = target.threads;
  }
  if (!options.heldOut.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(driver::HeldOut heldOut, driver::HeldOut::read(options.heldOut));
    t.drawn.heldOut.emplace(std::move(heldOut));
  }
  if (options.lora > 0) {
    auto base = generator::tlm::readWeights(options.from);
    if (!base.isOk()) return base.status().withContext("--from");
    t.model = base->config;
    t.adaptation = {{options.lora, 2.0 * static_cast<double>(options.lora)}, std::move(*base)};
  } else {
    t.from = options.from;
    t.model.layers = options.layers;
    t.model.width = options.width;
    t.model.heads = options.heads;
  }
  t.records = options.recordPlaces;
  t.folder = options.outputDir;
  t.sentences = options.batch;
  t.group = options.group;
  t.steps = options.steps;
  t.rate = options.rate;
  t.optimiser.weightDecay = options.weightDecay;
  t.loss.temperature = options.temperature;
  t.heldOut = options.validation;
  t.seed = options.seed;
  t.every = options.every;

  const Interrupts interrupts;
  train::TlmWatch watch;
  watch.begin = [](const train::TlmFacts& f) { std::fputs(factsText(f).c_str(), stderr); };
  watch.progress = [](const train::TlmProgress& p) { std::fprintf(stderr, "%s\n", progressText(p).c_str()); };
  watch.isInterrupted = Interrupts::met;
  LOCUTION_RETURN_IF_ERROR(train::trainTlm(t, watch).status());
  std::printf("%s/%s.safetensors\n", options.outputDir.c_str(), t.adaptation ? "adapter" : "weights");
  return Status::ok();
}

}  // namespace locution::tools
