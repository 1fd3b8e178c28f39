// For tests: kernels of small networks, and a model of random weights whose programs are compiled once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/kernels.h"
#include "driver/prepare.h"
#include "driver/tlm_programs.h"
#include "generator/tlm/graph_builder.h"
#include "generator/tlm/model.h"
#include "generator/tlm/reader.h"
#include "generator/tlm/weights.h"

namespace locution::tests {

namespace tlm = generator::tlm;

/// Convolutions (plain, depthwise, of stride 2), pooling, and a head with softmax.
inline graph::Graph convolutions() {
  tlm::GraphBuilder b("convolutions");
  auto weight = [&](const std::vector<int64_t>& dims) {
    Tensor t(DType::F32, dims);
    for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = static_cast<float>((i * 37 % 101) - 50) * 0.01F;
    return b.constant(std::move(t));
  };
  auto conv = [&](graph::ValueId x, const std::vector<int64_t>& dims, int64_t stride, int64_t groups) {
    const int64_t pad = dims[2] / 2;
    const auto y = b.node("Conv", {x, weight(dims)},
                          {{"strides", std::vector<int64_t>{stride, stride}},
                           {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                           {"group", groups}});
    return b.node("Relu", {y});
  };
  auto x = b.input("x", DType::F32, {1, 3, 33, 33});
  x = conv(x, {16, 3, 3, 3}, 1, 1);
  x = conv(x, {32, 16, 3, 3}, 2, 1);
  x = conv(x, {32, 1, 5, 5}, 1, 32);
  x = conv(x, {48, 32, 1, 1}, 1, 1);
  x = b.node("GlobalAveragePool", {x});
  x = b.matMul(b.reshape(x, {1, 48}), weight({48, 10}));
  b.output(b.node("Softmax", {x}, {{"axis", int64_t{-1}}}), "y");
  return b.take();
}

inline tlm::ModelConfig smallModel() {
  tlm::ModelConfig c;
  c.layers = 2;
  c.width = 64;
  c.heads = 2;
  c.context = 256;
  return c;
}

/// Different kernels of small networks; attention and norms come from the language model itself.
inline std::vector<loop::Computation> smallKernels() {
  driver::CompileOptions options;
  auto session = driver::Session::create(options);
  LOCUTION_CHECK(session.isOk()) << session.status().message();
  std::vector<loop::Computation> out;
  std::map<uint64_t, bool> seen;
  std::vector<graph::Graph> graphs;
  graphs.push_back(convolutions());
  graphs.push_back(tlm::trainingGraph(smallModel(), {4, 32, 4, 24, 2}));
  for (graph::Graph& g : graphs) {
    Status s = (*session)->optimise(g);
    LOCUTION_CHECK(s.isOk()) << s.message();
    auto lowered = (*session)->lower(g);
    LOCUTION_CHECK(lowered.isOk()) << lowered.status().message();
    for (const driver::Step& step : lowered->steps)
      if (const auto* k = std::get_if<driver::KernelStep>(&step))
        if (!k->computation.raw && !std::exchange(seen[driver::kernelKey(k->computation)], true))
          out.push_back(k->computation);
  }
  return out;
}

inline std::vector<TargetSpec> severalTargets() {
  TargetSpec narrow, middle, wide;
  narrow.vectorBytes = 16;
  narrow.hasFma = false;
  middle.threads = 2;
  wide.vectorBytes = 64;
  wide.vectorRegisters = 32;
  wide.hasMask = wide.hasVnni = true;
  return {narrow, middle, wide};
}

inline tlm::Weights randomWeights(const tlm::ModelConfig& config, uint64_t seed, float spread = 1) {
  tlm::Weights w{config, tlm::randomParameters(config, seed)};
  // Words that differ: a fresh model finds all of them about equally likely.
  for (auto& [name, tensor] : w.parameters)
    if (name.find("ln_") == std::string::npos)
      for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<float>()[i] *= spread;
  return w;
}

/// Compiled once for all tests of a process: they depend on the model's size alone.
inline std::shared_ptr<const tlm::ProgramSource> programsFor(const tlm::ModelConfig& config) {
  static std::map<int64_t, std::shared_ptr<const tlm::ProgramSource>> known;
  auto& programs = known[config.width];
  if (!programs) programs = std::make_shared<const tlm::ProgramSource>(driver::compiledPrograms(config));
  return programs;
}

struct Model {
  explicit Model(const tlm::Weights& w)
      : weights(w), network(std::make_shared<const tlm::Network>(w)), programs(programsFor(w.config)) {}
  tlm::Weights weights;
  // Shared with readers.
  std::shared_ptr<const tlm::Network> network;
  std::shared_ptr<const tlm::ProgramSource> programs;
};

}  // namespace locution::tests
