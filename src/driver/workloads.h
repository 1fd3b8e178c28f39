// The kernels of a model as workloads: what schedulers, records and audits work on.
#pragma once

#include <string>
#include <vector>

#include "driver/options.h"
#include "space/workload.h"
#include "support/status.h"

namespace locution::driver {

struct ModelWorkload {
  space::Workload workload;
  int count = 0;  ///< kernels that are this workload
};

/// Each workload once, in the order in which they come.
std::vector<ModelWorkload> distinctWorkloads(const std::vector<const loop::Computation*>& kernels);
/// Of a model's kernels, without those of raw loops, which have nothing to schedule. Errors: as compileModel.
Result<std::vector<ModelWorkload>> modelWorkloads(const std::string& path, const CompileOptions& options);

}  // namespace locution::driver
