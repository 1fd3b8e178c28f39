// A model of dynamic dims as one instruction: the whole of it is a region, compiled for the shapes that a run brings.
#include "driver/lazy_region.h"
#include "driver/prepare.h"
#include "hostops/attrs.h"
#include "passes/specialise.h"

namespace locution::driver {

using runtime::Executable;
using runtime::SlotId;
using runtime::SlotSpace;

namespace {

// Of a model's input or output, the slot included.
runtime::Port addPort(Executable& exe, const graph::Value& value, SlotSpace space, size_t index) {
  std::vector<int64_t> dims;
  for (const Dim& d : value.type.shape.dims()) dims.push_back(d.isKnown() ? d.value() : -1);
  const SlotId slot{static_cast<int32_t>(exe.slots.size())};
  exe.slots.push_back(
      {value.type.dtype, dims, space, space == SlotSpace::Input ? static_cast<int32_t>(index) : 0, 0, value.name});
  return {value.name, value.type.dtype, dims, slot, value.type.kind};
}

}  // namespace

Result<Compiled> Session::compileLazily(graph::Graph graph, const std::string& path) {
  for (const passes::DynamicDim& d : passes::dynamicDims(graph))
    if (d.axis < 0)
      return Status::error("not even the rank of input '" + graph.value(d.input).name +
                           "' is known: give its shape (--shape NAME=DIMS)");
  // Compiled from the graph as it came; types are inferred for the ports alone.
  auto asItCame = std::make_shared<const graph::Graph>(graph);
  LOCUTION_RETURN_IF_ERROR(inferTypes(graph));
  auto exe = std::make_shared<Executable>();
  exe->modelName = graph.name;
  exe->metadata = graph.metadata;
  exe->compilerVersion = compilerVersion();
  exe->target = target_;
  runtime::RunRegion run;
  run.nodeName = path;  // what its messages begin with
  run.attrs = hostops::serialiseAttrs({});
  run.regions = {0};
  runtime::Region region;
  region.name = "the model";
  for (graph::ValueId v : graph.main().inputs) {
    exe->inputs.push_back(addPort(*exe, graph.value(v), SlotSpace::Input, exe->inputs.size()));
    region.captures.push_back(static_cast<int32_t>(run.captured.size()));
    run.captured.push_back(exe->inputs.back().slot);
  }
  for (graph::ValueId v : graph.main().outputs) {
    exe->outputs.push_back(addPort(*exe, graph.value(v), SlotSpace::Dynamic, exe->outputs.size()));
    run.outputs.push_back(exe->outputs.back().slot);
  }
  requireFrozen(*exe);
  region.open = "only a run tells its shapes";
  region.compiler = std::make_shared<LazyRegion>(shared_from_this(), std::move(asItCame), LazyRegion::Of::Model);
  exe->regions.push_back(std::move(region));
  exe->instructions.emplace_back(std::move(run));
  Compiled out;
  out.executable = std::move(exe);
  out.warnings = warnings_;
  return out;
}

}  // namespace locution::driver
