// Training steps: AdamW by hand, gradients of a whole model.
#include "train/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "passes/reference_run.h"
#include "train/differentiate.h"
#include "train/gradient_cases.h"
#include "train/schedule.h"
#include "train/shuffle.h"
#include "train/small_gpt2.h"

namespace locution::train {
namespace {

driver::CompileOptions compileOptions(int threads = 1) {
  driver::CompileOptions o;
  o.threads = threads;
  o.jobs = 2;
  return o;
}

Tensor floats(const Tensor& t) {
  Tensor out(DType::F32, t.dims());
  for (int64_t i = 0; i < t.elements(); ++i) out.setElement(i, t.elementAsDouble(i));
  return out;
}

/// loss = sum((w x - y)^2) / 2 + sum(b^2) / 2
graph::Graph squares() {
  auto g = graph::parseGraph(R"(graph "squares" {
  input %w: float32[2x3]
  const %b: float32[2] = [0.5, -0.25]
  input %x: float32[3]
  input %y: float32[2]
  const %half: float32[scalar] = 0.5
  %p: float32[2] = MatMul(%w, %x)
  %e: float32[2] = Sub(%p, %y)
  %s: float32[scalar] = ReduceSumSquare(%e) {keepdims = 0}
  %t: float32[scalar] = ReduceSumSquare(%b) {keepdims = 0}
  %u: float32[scalar] = Add(%s, %t)
  %loss: float32[scalar] = Mul(%u, %half)
  output %loss
})");
  EXPECT_TRUE(g.isOk()) << g.status().message();
  return std::move(*g);
}

TEST(TrainingStep, IsAdamWByHand) {
  StepOptions options;
  options.optimiser.weightDecay = 0.1;
  options.optimiser.mostNorm = 0.7;
  auto step = TrainingStep::create(squares(), "loss", {"w", "b"}, options, compileOptions());
  ASSERT_TRUE(step.isOk()) << step.status().message();
  Tensors initial = {{"w", floats(numbers({2, 3}, -1, 1, 3))}};
  ASSERT_TRUE((*step)->start(initial).isOk());
  std::vector<double> value(8), first(8), second(8);
  for (int64_t i = 0; i < 6; ++i) value[static_cast<size_t>(i)] = initial["w"].elementAsDouble(i);
  value[6] = 0.5;
  value[7] = -0.25;
  for (int t = 1; t <= 4; ++t) {
    const Tensor x = floats(numbers({3}, -1, 1, 10 + static_cast<uint64_t>(t))),
                 y = floats(numbers({2}, -1, 1, 20 + static_cast<uint64_t>(t)));
    const double rate = 0.01 * t;
    ASSERT_TRUE((*step)->run({{"x", x}, {"y", y}}, rate).isOk());
    std::vector<double> g(8);
    double norm = 0;
    for (size_t row = 0; row < 2; ++row) {
      double e = -y.elementAsDouble(static_cast<int64_t>(row));
      for (size_t k = 0; k < 3; ++k) e += value[row * 3 + k] * x.elementAsDouble(static_cast<int64_t>(k));
      for (size_t k = 0; k < 3; ++k) g[row * 3 + k] = e * x.elementAsDouble(static_cast<int64_t>(k));
      g[6 + row] = value[6 + row];
    }
    for (double v : g) norm += v * v;
    norm = std::sqrt(norm);
    EXPECT_NEAR((*step)->output("gradient.norm").elementAsDouble(0), norm, 1e-6);
    const double factor = std::min(1.0, 0.7 / (norm + 1e-6));
    for (size_t i = 0; i < 8; ++i) {
      first[i] = 0.9 * first[i] + 0.1 * g[i] * factor;
      second[i] = 0.999 * second[i] + 0.001 * g[i] * factor * g[i] * factor;
      if (i < 6) value[i] -= rate * 0.1 * value[i];  // a bias doesn't decay
      value[i] -= rate * first[i] / (1 - std::pow(0.9, t)) / (std::sqrt(second[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
    const State s = (*step)->state();
    EXPECT_EQ(s.step, t);
    for (size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(i < 6 ? s.parameters.at("w").elementAsDouble(static_cast<int64_t>(i))
                        : s.parameters.at("b").elementAsDouble(static_cast<int64_t>(i) - 6),
                  value[i], 2e-6)
          << "step " << t << ", parameter " << i;
  }
}

TEST(TrainingStep, NamesWhatIsMissing) {
  auto create = [](const std::string& loss, const std::vector<std::string>& parameters) {
    auto step = TrainingStep::create(squares(), loss, parameters, {}, compileOptions());
    return step.isOk() ? std::string("no error") : step.status().message();
  };
  EXPECT_EQ(create("loss", {"w", "v"}), "no input and no constant is called 'v'");
  EXPECT_EQ(create("error", {"w"}), "no output is called 'error'");
  EXPECT_EQ(create("loss", {"w", "w"}), "the parameter 'w' is named twice");
  auto step = TrainingStep::create(squares(), "loss", {"w"}, {}, compileOptions());
  ASSERT_TRUE(step.isOk()) << step.status().message();
  EXPECT_EQ((*step)->start({}).message(), "the parameter 'w' is missing");
  EXPECT_EQ((*step)->start({{"w", Tensor(DType::F32, {3, 2})}}).message(),
            "the parameter 'w' is float32[3x2], the graph wants float32[2x3]");
}

// Inputs in the graph's order.
std::vector<Tensor> ordered(const graph::Graph& g, const Tensors& a, const Tensors& b) {
  std::vector<Tensor> out;
  for (graph::ValueId v : g.main().inputs) {
    auto found = a.find(g.value(v).name);
    out.push_back(found != a.end() ? found->second : b.at(g.value(v).name));
  }
  return out;
}

TEST(TrainingStep, AGpt2sGradientsAgreeWithFiniteDifferences) {
  SmallGpt2 m;
  m.type = DType::F64;
  const graph::Graph forward = m.graph();
  graph::Graph g = m.graph();
  graph::Patch patch(g);
  std::vector<graph::ValueId> wanted;
  for (const std::string& name : m.names()) wanted.push_back(g.findValue(name));
  auto gradients = differentiate(patch, g.main().outputs[0], wanted);
  ASSERT_TRUE(gradients.isOk()) << gradients.status().message();
  patch.setRegionOutputs(g.mainRegion(), *gradients);
  const Tensors data = m.randomData(1);
  Tensors parameters = m.randomParameters(50);
  auto got = passes::ReferenceRun(g).run(ordered(g, parameters, data));
  ASSERT_TRUE(got.isOk()) << got.status().message();
  // The derivative along one direction for each parameter tensor.
  size_t which = 0;
  for (const std::string& name : m.names()) {
    const Tensor& gradient = (*got)[which++];
    const Tensor at = parameters[name], direction = numbers(at.dims(), -1, 1, 7);
    constexpr double kStep = 1e-5;
    double want = 0, is = 0;
    for (double sign : {1.0, -1.0}) {
      Tensor moved(DType::F64, at.dims());
      for (int64_t i = 0; i < at.elements(); ++i)
        moved.setElement(i, at.elementAsDouble(i) + sign * kStep * direction.elementAsDouble(i));
      parameters[name] = moved;
      auto loss = passes::ReferenceRun(forward).run(ordered(forward, parameters, data));
      ASSERT_TRUE(loss.isOk()) << loss.status().message();
      want += sign * (*loss)[0].elementAsDouble(0) / (2 * kStep);
    }
    parameters[name] = at;
    for (int64_t i = 0; i < at.elements(); ++i) is += gradient.elementAsDouble(i) * direction.elementAsDouble(i);
    EXPECT_NEAR(is, want, 1e-6 * std::max(1.0, std::abs(want))) << name;
  }
}

// What the compiled step computes, in float32 with everything fused, against the interpreter in float64.
TEST(TrainingStep, ACompiledGpt2sGradientsAgreeWithTheInterpreter) {
  SmallGpt2 m;
  StepOptions options;
  options.keepGradients = true;
  auto step = TrainingStep::create(m.graph(), "loss", m.names(), options, compileOptions(2));
  ASSERT_TRUE(step.isOk()) << step.status().message();
  const Tensors data = m.randomData(1), parameters = m.randomParameters(50);
  ASSERT_TRUE((*step)->start(parameters).isOk());
  Status ran = (*step)->run(data, 1e-3);
  ASSERT_TRUE(ran.isOk()) << ran.message();

  SmallGpt2 exact = m;
  exact.type = DType::F64;
  graph::Graph g = exact.graph();
  graph::Patch patch(g);
  std::vector<graph::ValueId> wanted;
  for (const std::string& name : m.names()) wanted.push_back(g.findValue(name));
  auto gradients = differentiate(patch, g.main().outputs[0], wanted);
  ASSERT_TRUE(gradients.isOk()) << gradients.status().message();
  std::vector<graph::ValueId> outputs = *gradients;
  outputs.push_back(g.main().outputs[0]);
  patch.setRegionOutputs(g.mainRegion(), outputs);
  auto doubles = [](const Tensors& from) {
    Tensors out;
    for (const auto& [name, t] : from) {
      out[name] = t;
      if (t.dtype() != DType::F32) continue;
      out[name] = Tensor(DType::F64, t.dims());
      for (int64_t i = 0; i < t.elements(); ++i) out[name].setElement(i, t.elementAsDouble(i));
    }
    return out;
  };
  auto want = passes::ReferenceRun(g).run(ordered(g, doubles(parameters), doubles(data)));
  ASSERT_TRUE(want.isOk()) << want.status().message();
  EXPECT_NEAR((*step)->loss(), want->back().elementAsDouble(0), 1e-5 * want->back().elementAsDouble(0));
  size_t which = 0;
  for (const std::string& name : m.names()) {
    const Tensor& is = (*step)->output("gradient." + name);
    const Tensor& exactly = (*want)[which++];
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < is.elements(); ++i) {
      largest = std::max(largest, std::abs(exactly.elementAsDouble(i)));
      worst = std::max(worst, std::abs(is.elementAsDouble(i) - exactly.elementAsDouble(i)));
    }
    EXPECT_LE(worst, 1e-5 * largest) << name;
  }
}

TEST(LearningRate, WarmsUpAndGoesDownACosine) {
  const LearningRate r{1, 0.1, 10, 110};
  EXPECT_DOUBLE_EQ(r.at(0), 0.1);
  EXPECT_DOUBLE_EQ(r.at(9), 1);
  EXPECT_DOUBLE_EQ(r.at(10), 1);
  EXPECT_NEAR(r.at(60), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(r.at(110), 0.1);
  EXPECT_DOUBLE_EQ(r.at(1000), 0.1);
}

TEST(Shuffle, SeesEachExampleOnceAnEpoch) {
  Shuffle a(17, 5), b(17, 5), other(17, 6);
  std::vector<int64_t> first, second, different;
  for (int64_t i = 0; i < 17; ++i) first.push_back(a.at(i));
  for (int64_t i = 17; i < 34; ++i) second.push_back(a.at(i));
  for (int64_t i = 0; i < 17; ++i) different.push_back(other.at(i));
  EXPECT_NE(first, second);
  EXPECT_NE(first, different);
  EXPECT_EQ(b.at(20), second[3]);  // from anywhere
  EXPECT_EQ(b.at(3), first[3]);
  for (auto* order : {&first, &second}) {
    std::sort(order->begin(), order->end());
    for (int64_t i = 0; i < 17; ++i) EXPECT_EQ((*order)[static_cast<size_t>(i)], i);
  }
}

}  // namespace
}  // namespace locution::train
