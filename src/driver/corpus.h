// A corpus: the kernels of many models and of drawn networks, each workload once. What collections measure and audits walk.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "driver/options.h"
#include "space/workload.h"
#include "support/status.h"

namespace locution::driver {

struct CorpusWorkload {
  space::Workload workload;
  std::set<std::string> models;  ///< names of the files it occurs in, without folder and ending; "drawn"
  std::set<std::string> ops;     ///< op types of the nodes that it computes
  int64_t count = 0;             ///< kernels that are this workload
  std::string name, op;          ///< of the first such kernel, and of the node that anchors it
};

struct CorpusOptions {
  std::vector<std::string> places;  ///< models, and folders with models
  int64_t drawn = 0;                ///< networks of drawn layers besides (drawn.h)
  uint64_t seed = 0;                ///< of these
  /// Points that a kernel's stages compute, reduced ones included: those with more are left out.
  double mostPoints = std::numeric_limits<double>::infinity();
};

/// The workloads depend on the options' target, since layouts do. In the order of the places, files of a folder by name; kernels of raw
/// loops have nothing to schedule and are left out. Errors: as compileModel; a place that isn't there, a folder without models.
Result<std::vector<CorpusWorkload>> readCorpus(const CorpusOptions& corpus, const CompileOptions& options);

/// Points that the kernel's stages compute, reduced ones included.
double points(const loop::Computation& kernel);

}  // namespace locution::driver
