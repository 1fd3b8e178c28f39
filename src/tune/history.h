// Between a search and the database of records: what is known of a kernel's plans already, and where new measurements go.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "generator/search/search.h"
#include "records/store.h"
#include "tune/measure.h"

namespace locution::tune {

class History {
 public:
  /// Who measures, for the records.
  struct Author {
    std::string proposer;
    uint64_t seed = 0;
    std::string model, compiler;
  };
  /// `store` must outlive the history. Errors: those of the store.
  static Result<History> open(records::Store& store, const TargetSpec& target, Author author);

  /// Kernels are numbered in the order they are added. `space` must outlive the history.
  Status add(const space::Space& space, const space::Choices& incumbent);

  /// A plan that was measured against the same incumbent on a machine of the same kind.
  struct Known {
    space::Choices choices;
    std::optional<double> ratio;  ///< the median of all its measurements; null: it failed
    bool isOwn = false;           ///< by this author
  };
  /// By sentence.
  Result<std::vector<Known>> known(size_t kernel);

  Status store(size_t kernel, std::span<const generator::Proposal> plans, std::span<const Measurement> results);
  /// The incumbent's own time.
  Status storeIncumbent(size_t kernel, const Measurement& result);
  /// What the machine code of a plan is now: records of other code don't hold any more.
  Status codeIs(size_t kernel, const space::Choices& choices, uint64_t code);

  /// Tells a model what is known of all other workloads on this target, up to `most` measurements. Returns how many those were.
  Result<int64_t> teach(generator::CostModel& model, int64_t most);

 private:
  struct Kernel {
    const space::Space* space;
    std::string workload, incumbent, incumbentSentence;
  };
  History(records::Store& store, Author author) : store_(&store), author_(std::move(author)) {}
  std::optional<records::Record> recordOf(const Kernel& kernel, std::string sentence, const Measurement& m) const;

  records::Store* store_;
  Author author_;
  std::string target_, machine_;
  std::vector<Kernel> kernels_;
};

}  // namespace locution::tune
