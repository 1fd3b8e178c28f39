// A graph compiled as it is and run by names: what a training is evaluated with.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/tensor.h"
#include "driver/options.h"
#include "graph/graph.h"
#include "support/status.h"

namespace locution::runtime {
class Context;
class Program;
}  // namespace locution::runtime

namespace locution::train {

class Forward {
 public:
  static Result<std::unique_ptr<Forward>> create(graph::Graph graph, const driver::CompileOptions& compile);
  ~Forward();
  /// Each input stands in one of the two; data wins.
  Status run(const std::map<std::string, Tensor>& data, const std::map<std::string, Tensor>& parameters);
  /// Of the last run; valid until the next.
  const Tensor& output(const std::string& name) const;

 private:
  Forward();
  std::shared_ptr<const runtime::Program> program_;  // shared with the context
  std::unique_ptr<runtime::Context> context_;
};

}  // namespace locution::train
