// Some of a corpus: what learning may see or what is held out, and a sample of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/target.h"
#include "driver/corpus.h"
#include "driver/held_out.h"

namespace locution::driver {

enum class Part : uint8_t { All, Training, HeldOut };

struct Selection {
  std::optional<HeldOut> heldOut;
  Part part = Part::All;
  int64_t sample = 0;  ///< at most so many of each kind of group (HeldOut::kindOf), and of what is in none; 0: all
  uint64_t seed = 0;   ///< of the sample
};

struct Selected {
  const CorpusWorkload* workload = nullptr;
  std::vector<std::string> groups;  ///< that it is in
};

/// In the corpus's order. A workload is in the sample when one of its kinds of groups chose it.
std::vector<Selected> select(const std::vector<CorpusWorkload>& corpus, const TargetSpec& target,
                             const Selection& selection);

}  // namespace locution::driver
