#include "train/tlm_training.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "generator/tlm/adapter.h"
#include "generator/tlm/weights.h"
#include "support/hash.h"
#include "support/strings.h"
#include "train/forward.h"
#include "train/plot.h"
#include "train/trainer.h"

namespace locution::train {

namespace tlm = generator::tlm;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kEvaluated = 16;  // batches

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Share of decisions whose likeliest word is the one that was taken, weighted as the loss is.
double accuracyOf(const Tensors& data, const Tensor& predicted) {
  const Tensor &labels = data.at("labels"), &weights = data.at("weights");
  double hit = 0, all = 0;
  for (int64_t i = 0; i < labels.elements(); ++i) {
    const double w = weights.data<float>()[i];
    all += w;
    if (labels.data<int64_t>()[i] == predicted.data<int64_t>()[i]) hit += w;
  }
  return all > 0 ? hit / all : 0;
}

/// Lines of the log before a step; what comes after is written anew.
class Log {
 public:
  static Result<Log> open(const std::string& path, int64_t firstStep) {
    Log log;
    log.path_ = path;
    std::ifstream old(path);
    for (std::string line; std::getline(old, line);) {
      const Json j = Json::parse(line, nullptr, false);
      if (j.is_object() && j.value("step", int64_t{0}) <= firstStep && j.contains("step")) log.lines_.push_back(j);
    }
    old.close();
    std::ofstream file(path, std::ios::trunc);
    for (const Json& j : log.lines_) file << j.dump() << "\n";
    if (!file.flush()) return Status::error(path + ": can't be written");
    return log;
  }
  Status add(const TlmProgress& p) {
    Json j = {{"step", p.step},
              {"rate", p.learningRate},
              {"loss", p.loss},
              {"policy", p.policy},
              {"accuracy", p.accuracy},
              {"gradient_norm", p.gradientNorm},
              {"tokens_s", p.tokensPerSecond}};
    if (p.heldOutPolicy) j["held_out_policy"] = *p.heldOutPolicy;
    if (p.heldOutAccuracy) j["held_out_accuracy"] = *p.heldOutAccuracy;
    std::ofstream file(path_, std::ios::app);
    if (!(file << j.dump() << "\n").flush()) return Status::error(path_ + ": can't be written");
    lines_.push_back(std::move(j));
    return Status::ok();
  }
  std::string svg() const {
    auto curve = [&](const char* name, const char* key) {
      Curve c{name, {}};
      for (const Json& j : lines_)
        if (j.contains(key) && j[key].is_number()) c.points.emplace_back(j["step"].get<double>(), j[key].get<double>());
      return c;
    };
    return plotSvg(
        "Training of the Tensor Language Model", "steps",
        {{"cross entropy of a decision (nats)", {curve("training", "policy"), curve("held out", "held_out_policy")}},
         {"decisions as measured best", {curve("training", "accuracy"), curve("held out", "held_out_accuracy")}}});
  }

 private:
  std::string path_;
  std::vector<Json> lines_;
};

class Training {
 public:
  Training(const TlmTraining& options, const TlmWatch& watch)
      : o_(options), watch_(watch), lora_(options.adaptation ? options.adaptation->lora : tlm::Lora()) {}

  Result<tlm::Parameters> run() {
    if (isKept()) {
      std::error_code failed;
      std::filesystem::create_directories(o_.folder, failed);
      if (failed) return Status::error(o_.folder + ": " + failed.message());
    }
    LOCUTION_RETURN_IF_ERROR(read());
    LOCUTION_RETURN_IF_ERROR(compile());
    LOCUTION_ASSIGN_OR_RETURN(const tlm::Parameters start, initial());
    if (o_.seconds > 0) LOCUTION_RETURN_IF_ERROR(fitTime(start));
    if (watch_.begin) watch_.begin(facts_);
    if (isKept()) {
      LOCUTION_ASSIGN_OR_RETURN(log_, Log::open(file("train.jsonl"), facts_.firstStep));
    }
    Status s = loop(start);
    const bool isEnough = isStopped_ && !isKept();
    if (!s.isOk() && !isEnough) return s;
    tlm::Parameters trained = step_->state().parameters;
    if (isKept()) LOCUTION_RETURN_IF_ERROR(write(trained));
    return trained;
  }

 private:
  bool isKept() const { return !o_.folder.empty(); }
  std::string file(const char* name) const { return (std::filesystem::path(o_.folder) / name).string(); }

  Status read() {
    const auto start = Clock::now();
    LOCUTION_ASSIGN_OR_RETURN(examples_, readExamples(o_.records, o_.model.context));
    examples_.groups.insert(examples_.groups.end(), o_.examples.groups.begin(), o_.examples.groups.end());
    facts_.leftOut = examples_.tooLong + examples_.unreadable + examples_.untimed;
    facts_.workloads = static_cast<int64_t>(examples_.groups.size());
    std::string names = join(o_.records, ", ");
    if (o_.drawn.networks > 0) {
      LOCUTION_ASSIGN_OR_RETURN(Examples drawn, drawnExamples(o_.drawn, o_.model.context));
      facts_.workloads += static_cast<int64_t>(drawn.groups.size());
      facts_.leftOut += drawn.tooLong;
      for (ExampleGroup& g : drawn.groups) examples_.groups.push_back(std::move(g));
      names += (names.empty() ? "" : ", ") + std::string("drawn networks");
    }
    if (examples_.count() == 0) return Status::error(names + ": no sentence that a model could learn from");
    heldOut_ = takeHeldOut(examples_, o_.heldOut, o_.seed);
    if (examples_.count() == 0) return Status::error(names + ": all workloads are held out");
    facts_.sentences = examples_.count();
    facts_.heldOutSentences = heldOut_.count();
    facts_.readSeconds = since(start);
    return Status::ok();
  }

  Status compile() {
    const auto start = Clock::now();
    batches_.emplace(examples_, o_.sentences, o_.group, o_.seed, o_.loss);
    facts_.stepsPerEpoch = batches_->stepsPerEpoch();
    facts_.shape = batches_->shape(o_.steps);
    StepOptions options;
    options.optimiser = o_.optimiser;
    for (const tlm::ParameterInfo& p :
         o_.adaptation ? tlm::loraParametersOf(o_.model, lora_) : tlm::parametersOf(o_.model))
      names_.push_back(p.name);
    LOCUTION_ASSIGN_OR_RETURN(step_, TrainingStep::create(tlm::trainingGraph(o_.model, facts_.shape, lora_), "loss",
                                                          names_, options, o_.compile));
    if (heldOut_.count() > 0) {
      heldOutBatches_.emplace(heldOut_, o_.sentences, o_.group, o_.seed, o_.loss);
      evaluated_ = std::min(kEvaluated, heldOutBatches_->stepsPerEpoch());
      heldOutShape_ = heldOutBatches_->shape(evaluated_);
      LOCUTION_ASSIGN_OR_RETURN(forward_,
                                Forward::create(tlm::trainingGraph(o_.model, heldOutShape_, lora_), o_.compile));
    }
    facts_.compileSeconds = since(start);
    std::error_code ignored;
    if (isKept() && std::filesystem::exists(file("checkpoint.safetensors"), ignored)) {
      LOCUTION_ASSIGN_OR_RETURN(Checkpoint found, loadCheckpoint(file("checkpoint.safetensors")));
      facts_.firstStep = found.state.step;
    }
    return Status::ok();
  }

  Result<tlm::Parameters> initial() const {
    if (o_.adaptation) return tlm::initialLora(o_.model, lora_, o_.adaptation->base.parameters, o_.seed);
    if (o_.from.empty()) return tlm::randomParameters(o_.model, o_.seed);
    LOCUTION_ASSIGN_OR_RETURN(tlm::Weights weights, tlm::readWeights(o_.from));
    if (!(weights.config == o_.model)) return Status::error(o_.from + ": is a model of another size");
    return weights.parameters;
  }

  /// As many steps fewer as the time allows: the learning rate comes down to its end in any case.
  Status fitTime(const tlm::Parameters& start) {
    constexpr int64_t kTimed = 2;
    LOCUTION_RETURN_IF_ERROR(step_->start(start));
    Clock::time_point from;
    for (int64_t k = 0; k <= kTimed; ++k) {
      if (k == 1) from = Clock::now();  // the first one warms up
      LOCUTION_RETURN_IF_ERROR(step_->run(inputsOf(batches_->at(k, facts_.shape, o_.model.words)), 0));
    }
    const double each = since(from) / static_cast<double>(kTimed), left = o_.seconds - since(begin_);
    steps_ = std::clamp<int64_t>(static_cast<int64_t>(left / each), 1, steps_);
    return Status::ok();
  }

  /// What a step reads besides what is trained.
  Tensors inputsOf(Tensors batch) const {
    if (o_.adaptation) batch.insert(o_.adaptation->base.parameters.begin(), o_.adaptation->base.parameters.end());
    return batch;
  }

  /// What a checkpoint must agree with.
  Metadata metadata() const {
    const tlm::ModelConfig& c = o_.model;
    const tlm::TrainingShape& s = facts_.shape;
    auto list = [](const std::vector<double>& numbers) {
      std::vector<std::string> texts;
      for (double n : numbers) texts.push_back(Json(n).dump());
      return join(texts, " ");
    };
    uint64_t data = 0;
    for (const ExampleGroup& g : examples_.groups)
      for (const Example& e : g.examples)
        data = hashBytes(e.tokens.data(), e.tokens.size() * sizeof(language::Token),
                         hashBytes(&e.value, sizeof e.value, data));
    Metadata out = {
        {"model", list({double(c.layers), double(c.width), double(c.heads), double(c.context), double(c.words)})},
        {"shape", list({double(s.lines), double(s.length), double(s.sentences), double(s.decisions), double(s.group)})},
        {"schedule", list({double(o_.steps), o_.rate})},
        {"optimiser", list({o_.optimiser.beta1, o_.optimiser.beta2, o_.optimiser.epsilon, o_.optimiser.weightDecay,
                            o_.optimiser.mostNorm})},
        {"losses", list({o_.loss.temperature, o_.loss.valueShare, o_.loss.rankShare})},
        {"seed", std::to_string(o_.seed)},
        {"data", std::to_string(data)},
        {"from", o_.from}};
    if (o_.adaptation) {
      out["lora"] = list({double(lora_.rank), lora_.alpha});
      out["base"] = o_.adaptation->base.key();
    }
    return out;
  }

  Status loop(const tlm::Parameters& start) {
    TrainerOptions options;
    options.steps = steps_;
    options.rate = {o_.rate, o_.rate / 10, std::max<int64_t>(1, steps_ / 20), steps_};
    if (isKept()) options.checkpoint = file("checkpoint.safetensors");
    options.checkpointEvery = o_.every;
    options.metadata = metadata();
    Tensors data;
    auto fill = [&](int64_t k) -> Result<Tensors> {
      data = batches_->at(k, facts_.shape, o_.model.words);
      return inputsOf(data);
    };
    auto last = Clock::now();
    const auto begin = last;
    TlmProgress sum;
    int64_t count = 0, tokens = 0;
    return train(*step_, start, fill, options, [&](const StepReport& r, const TrainingStep& step) -> Status {
      ++count;
      tokens += batches_->tokens(r.step);
      sum.loss += r.loss;
      sum.gradientNorm += r.gradientNorm;
      sum.policy += step.output("policy.loss").elementAsDouble(0);
      sum.accuracy += accuracyOf(data, step.output("predicted"));
      const int64_t done = r.step + 1;
      if (watch_.isInterrupted && watch_.isInterrupted()) {
        isStopped_ = true;
        return Status::error("interrupted after step " + std::to_string(done) + " of " + std::to_string(steps_) +
                             ": the same command goes on");
      }
      if (done % o_.every != 0 && done != steps_) return Status::ok();
      TlmProgress p;
      const auto n = static_cast<double>(count);
      p.step = done;
      p.steps = steps_;
      p.learningRate = r.learningRate;
      p.loss = sum.loss / n;
      p.policy = sum.policy / n;
      p.accuracy = sum.accuracy / n;
      p.gradientNorm = sum.gradientNorm / n;
      p.tokensPerSecond = static_cast<double>(tokens) / since(last);
      LOCUTION_RETURN_IF_ERROR(evaluate(&p));
      p.secondsLeft = since(begin) / static_cast<double>(done - facts_.firstStep) * static_cast<double>(steps_ - done);
      if (watch_.progress) watch_.progress(p);
      if (log_) LOCUTION_RETURN_IF_ERROR(log_->add(p));
      sum = {};
      count = tokens = 0;
      last = Clock::now();
      return Status::ok();
    });
  }

  Status evaluate(TlmProgress* p) {
    if (!forward_) return Status::ok();
    Tensors parameters = step_->state().parameters;
    if (o_.adaptation) parameters.insert(o_.adaptation->base.parameters.begin(), o_.adaptation->base.parameters.end());
    double policy = 0, accuracy = 0;
    for (int64_t k = 0; k < evaluated_; ++k) {
      const Tensors data = heldOutBatches_->at(k, heldOutShape_, o_.model.words);
      LOCUTION_RETURN_IF_ERROR(forward_->run(data, parameters));
      policy += forward_->output("policy.loss").elementAsDouble(0);
      accuracy += accuracyOf(data, forward_->output("predicted"));
    }
    p->heldOutPolicy = policy / static_cast<double>(evaluated_);
    p->heldOutAccuracy = accuracy / static_cast<double>(evaluated_);
    return Status::ok();
  }

  Status write(const tlm::Parameters& trained) const {
    const std::map<std::string, std::string> notes = {{"steps", std::to_string(steps_)},
                                                      {"seed", std::to_string(o_.seed)},
                                                      {"sentences", std::to_string(facts_.sentences)},
                                                      {"workloads", std::to_string(facts_.workloads)}};
    if (o_.adaptation) {
      const tlm::Adapter adapter{lora_, trained, {}, o_.adaptation->base.key(), o_.model.words, "", notes};
      LOCUTION_RETURN_IF_ERROR(tlm::writeAdapter(adapter, file("adapter.safetensors")));
    } else {
      tlm::Weights weights;
      weights.config = o_.model;
      weights.parameters = trained;
      weights.notes = notes;
      LOCUTION_RETURN_IF_ERROR(tlm::writeWeights(weights, file("weights.safetensors")));
    }
    std::ofstream plot(file("train.svg"), std::ios::trunc);
    if (!(plot << log_->svg()).flush()) return Status::error(file("train.svg") + ": can't be written");
    return Status::ok();
  }

  const TlmTraining& o_;
  const TlmWatch& watch_;
  const tlm::Lora lora_;
  const Clock::time_point begin_ = Clock::now();
  int64_t steps_ = o_.steps;
  bool isStopped_ = false;
  Examples examples_, heldOut_;
  TlmFacts facts_;
  std::optional<TlmBatches> batches_, heldOutBatches_;
  tlm::TrainingShape heldOutShape_;
  int64_t evaluated_ = 0;
  std::vector<std::string> names_;
  std::unique_ptr<TrainingStep> step_;
  std::unique_ptr<Forward> forward_;
  std::optional<Log> log_;
};

}  // namespace

Result<tlm::Parameters> trainTlm(const TlmTraining& training, const TlmWatch& watch) {
  if (training.sentences < 1 || training.group < 1 || training.sentences % training.group != 0)
    return Status::error("a step of " + std::to_string(training.sentences) + " sentences can't be cut in groups of " +
                         std::to_string(training.group));
  return Training(training, watch).run();
}

}  // namespace locution::train
