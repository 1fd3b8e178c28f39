#include "passes/pass.h"

#include <chrono>

#include "passes/all_passes.h"
#include "support/check.h"

namespace locution::passes {

const std::vector<PassDef>& allPasses() {
  static const std::vector<PassDef> kPasses = {
#define PASS(name, function, summary) {name, summary, function},
#include "passes/passes.inc"
#undef PASS
  };
  return kPasses;
}

const PassDef* findPass(std::string_view name) {
  for (const PassDef& pass : allPasses())
    if (pass.name == name) return &pass;
  return nullptr;
}

Status runPass(const PassDef& pass, graph::Graph& graph, PassContext& context, const RunOptions& options) {
  if (options.disabled.contains(pass.name)) return Status::ok();
  CheckScope scope("pass " + std::string(pass.name));
  graph::Patch patch(graph);
  auto begin = std::chrono::steady_clock::now();
  Status status = pass.run(patch, context);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (options.timings) options.timings->push_back({std::string(pass.name), took.count(), patch.edits()});
  if (options.dump && (options.dumpAfter.contains("all") || options.dumpAfter.contains(pass.name))) {
    *options.dump << "// after " << pass.name << (patch.edits() == 0 ? " (unchanged)\n" : "\n");
    if (patch.edits() > 0) *options.dump << graph::print(graph);
  }
  LOCUTION_RETURN_IF_ERROR(status);
  // What no pass touched since it was found valid stays valid.
  if (options.verify && patch.edits() > 0) {
    Status valid = graph::verify(graph);
    LOCUTION_CHECK(valid.isOk()) << valid.message();
  }
  return Status::ok();
}

}  // namespace locution::passes
