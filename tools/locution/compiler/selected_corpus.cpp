#include <map>

#include "commands.h"

namespace locution::tools {

Result<SelectedCorpus> selectedCorpus(const Options& options, const driver::CompileOptions& compile) {
  const std::map<std::string, driver::Part> parts = {
      {"all", driver::Part::All}, {"training", driver::Part::Training}, {"held-out", driver::Part::HeldOut}};
  const auto part = parts.find(options.part);
  if (part == parts.end()) return Status::error("--part " + options.part + ": want all, training or held-out");
  if (part->second != driver::Part::All && options.heldOut.empty())
    return Status::error("--part " + options.part + ": want --held-out FILE, which says what that is");
  if (options.sample < 0) return Status::error("--sample: at least 1, or 0 for all");
  if (options.places.empty() && options.drawn < 1)
    return Status::error("want models, folders with models, or --drawn N networks");
  driver::Selection selection;
  selection.part = part->second;
  selection.sample = options.sample;
  selection.seed = options.seed;
  if (!options.heldOut.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(driver::HeldOut heldOut, driver::HeldOut::read(options.heldOut));
    selection.heldOut.emplace(std::move(heldOut));
  }
  LOCUTION_ASSIGN_OR_RETURN(TargetSpec target, driver::resolveTarget(compile));
  SelectedCorpus out;
  const driver::CorpusOptions corpus{options.places, options.drawn, options.seed, options.mostPoints};
  LOCUTION_ASSIGN_OR_RETURN(out.all, driver::readCorpus(corpus, compile));
  out.selected = driver::select(out.all, target, selection);
  return out;
}

}  // namespace locution::tools
