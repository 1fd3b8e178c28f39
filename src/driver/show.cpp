#include "driver/show.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "driver/kernels.h"
#include "driver/lower.h"
#include "driver/prepare.h"
#include "driver/workloads.h"
#include "generator/sentences.h"
#include "loop/passes.h"
#include "space/census.h"
#include "space/kernel_kind.h"
#include "space/workload.h"
#include "support/strings.h"

namespace locution::driver {

namespace {

std::string slotText(const runtime::Executable& e, runtime::SlotId id) {
  if (!id.isValid()) return "_";
  const runtime::Slot& s = e.slots[static_cast<size_t>(id.index)];
  std::vector<std::string> dims;
  for (int64_t d : s.dims) dims.push_back(d < 0 ? "?" : std::to_string(d));
  std::string place;
  switch (s.space) {
    case runtime::SlotSpace::Arena:
      place = "arena+" + std::to_string(s.offset);
      break;
    case runtime::SlotSpace::Constant:
      place = "constant " + std::to_string(s.index);
      break;
    case runtime::SlotSpace::Input:
      place = "input " + std::to_string(s.index);
      break;
    case runtime::SlotSpace::Output:
      place = "output " + std::to_string(s.index);
      break;
    case runtime::SlotSpace::Dynamic:
      place = "dynamic";
      break;
  }
  return s.name + " " + std::string(dtypeName(s.dtype)) + "[" + join(dims, "x") + "] @ " + place;
}

std::string slotsText(const runtime::Executable& e, const std::vector<runtime::SlotId>& ids) {
  std::vector<std::string> parts;
  for (runtime::SlotId id : ids) parts.push_back(slotText(e, id));
  return join(parts, ", ");
}

/// Each workload of the kernels once, in the order in which they come.
std::string showWorkloads(const std::vector<const loop::Computation*>& kernels) {
  const std::vector<ModelWorkload> workloads = distinctWorkloads(kernels);
  if (workloads.empty()) return "";
  std::string out =
      "; " + std::to_string(kernels.size()) + " kernels, " + std::to_string(workloads.size()) + " workloads\n";
  for (const ModelWorkload& m : workloads) {
    const space::Workload& w = m.workload;
    char work[32];
    std::snprintf(work, sizeof work, "%.0f", space::multiplyAdds(w.kernel));
    out += "\n; workload " + w.id() + " " + std::string(space::kindText(space::kindOf(w.kernel))) + " x" +
           std::to_string(m.count) + ", " + work + " multiply-adds\n" + w.text;
  }
  return out;
}

// What can be decided about a kernel, or what was; of equal kernels once. Raw loops have nothing to decide.
Result<std::string> spaceText(const Session& session, const loop::Computation& kernel, bool sentence,
                              std::set<std::string>* seen) {
  if (kernel.raw) return std::string();
  const space::Space space(kernel, session.target());
  const std::string id = space::canonical(kernel).id();
  const std::string title = kernel.name + ": workload " + id + "\n";
  if (!seen->insert(id).second) return sentence ? "# " + title : title;
  if (!sentence) {
    constexpr int kWalks = 1000;
    return title + space::print(space::takeCensus(space, kWalks, 0)) + "\n";
  }
  LOCUTION_RETURN_IF_ERROR(session.scheduler().check(kernel, session.target()));
  auto choices = session.scheduler().choices(space);
  if (!choices)
    return Status::error("--stage sentences: plans of the scheduler " + std::string(session.scheduler().name()) +
                         " are not written in sentences");
  std::string explained;
  for (const std::string& line : splitText(session.scheduler().explain(space), '\n'))
    if (!line.empty()) explained += "#   " + line + "\n";
  return "# " + title + generator::sentenceLine(space, *choices) + "\n" + explained;
}

}  // namespace

const std::vector<std::string>& showStages() {
  static const std::vector<std::string> kStages = {"graph", "fused", "workloads", "space", "sentences",
                                                   "loops", "llvm",  "asm",       "memory"};
  return kStages;
}

std::string showMemory(const runtime::Executable& e) {
  std::string out = "arena " + std::to_string(e.arenaBytes) + " bytes, constants " + std::to_string(e.weightBytes()) +
                    " bytes, code " + std::to_string(e.code.size()) + " bytes\n";
  for (size_t i = 0; i < e.instructions.size(); ++i) {
    out += std::to_string(i) + ": ";
    const runtime::Instruction& instruction = e.instructions[i];
    if (const auto* k = std::get_if<runtime::RunKernel>(&instruction)) {
      const runtime::KernelInfo& info = e.kernels[static_cast<size_t>(k->kernel)];
      out +=
          "kernel " + info.name + " x" + std::to_string(info.parallelExtent) + " (" + slotsText(e, k->buffers) + ")\n";
    } else if (const auto* h = std::get_if<runtime::RunHostOp>(&instruction)) {
      out += "host " + h->op + " (" + slotsText(e, h->inputs) + ") -> (" + slotsText(e, h->outputs) + ")\n";
    } else if (const auto* c = std::get_if<runtime::CheckRange>(&instruction)) {
      out +=
          "check " + slotText(e, c->slot) + " in [" + std::to_string(c->low) + ", " + std::to_string(c->high) + "]\n";
    } else if (const auto* r = std::get_if<runtime::RunRegion>(&instruction)) {
      out += "region " + r->nodeName + " (" + slotsText(e, r->inputs) + "; " + slotsText(e, r->captured) + ") -> (" +
             slotsText(e, r->outputs) + ")\n";
      for (int32_t k : r->regions) {
        const runtime::Region& region = e.regions[static_cast<size_t>(k)];
        out += "  " + region.name + ": " +
               (region.code ? "compiled" : (region.compiler ? "" : "an error: ") + region.open) + "\n";
      }
    } else if (const auto* copy = std::get_if<runtime::CopySlot>(&instruction)) {
      out += "copy " + slotText(e, copy->from) + " -> " + slotText(e, copy->to) + "\n";
    }
  }
  return out;
}

Result<std::string> showModel(const std::string& path, const CompileOptions& options, const std::string& stage,
                              const std::string& kernel) {
  const auto& stages = showStages();
  if (std::find(stages.begin(), stages.end(), stage) == stages.end())
    return Status::error("--stage " + stage + ": there are " + join(stages, ", "));
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::create(options));
  LOCUTION_ASSIGN_OR_RETURN(graph::Graph graph, session->load(path));
  if (stage == "graph") {
    Status typed = session->inferTypes(graph);
    if (!typed.isOk()) return typed.withContext(path);
    return graph::print(graph);
  }
  if (stage == "memory") {
    auto compiled = session->compile(std::move(graph), {});
    if (!compiled.isOk()) return compiled.status().withContext(path);
    return showMemory(*compiled->executable);
  }
  Status s = session->optimise(graph);
  if (!s.isOk()) return s.withContext(path);
  if (stage == "fused") return graph::print(graph);
  auto lowered = session->lower(graph);
  if (!lowered.isOk()) return lowered.status().withContext(path);
  LOCUTION_RETURN_IF_ERROR(session->prepareSchedules(*lowered));
  std::string out;
  std::vector<const loop::Computation*> workloads;
  std::set<std::string> seen;
  if (stage == "space") out = space::decisionLegend() + "\n";
  for (const Step& step : lowered->steps) {
    const auto* k = std::get_if<KernelStep>(&step);
    if (!k || k->computation.name.find(kernel) == std::string::npos) continue;
    if (stage == "workloads") {
      workloads.push_back(&k->computation);
      continue;
    }
    if (stage == "space" || stage == "sentences") {
      LOCUTION_ASSIGN_OR_RETURN(std::string text, spaceText(*session, k->computation, stage == "sentences", &seen));
      out += text;
      continue;
    }
    LOCUTION_ASSIGN_OR_RETURN(ScheduledKernel scheduled,
                              scheduleKernel(k->computation, session->scheduler(), session->target()));
    if (stage == "loops") {
      out +=
          loop::print(k->computation) + "plan: " + scheduled.sentence + "\n" + loop::print(scheduled.function) + "\n";
    } else {
      LOCUTION_ASSIGN_OR_RETURN(std::string text, session->compiler().show(scheduled.function, stage));
      out += "; kernel " + k->computation.name + "\n" + text + "\n";
    }
  }
  out += showWorkloads(workloads);
  if ((out.empty() || (stage == "space" && seen.empty())) && !kernel.empty())
    return Status::error("--kernel " + kernel + ": no kernel has a name that contains this");
  return out;
}

}  // namespace locution::driver
