// What a machine's own measurements add to a trained model: low-rank matrices that are added to those of the model when both are read, so
// that decoding costs what it did, and the best sentences of the workloads that were measured. A file of its own, which belongs to
// one model's weights: safetensors with the matrices by name, all else as metadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "generator/tlm/model.h"
#include "generator/tlm/weights.h"
#include "support/status.h"

namespace locution::generator::tlm {

/// Plans as text (language::planText) by the hashes of workload (space::workloadHash) and target (TargetSpec::str).
using KnownPlans = std::map<std::pair<uint64_t, uint64_t>, std::string>;

struct Adapter {
  Lora lora;              ///< rank 0: no matrices, plans alone
  Parameters parameters;  ///< loraParametersOf
  KnownPlans plans;       ///< written whatever the model would say
  std::string base;       ///< Weights::key of the model it belongs to
  int64_t words = 0;      ///< of the vocabulary that it was trained with
  std::string machine;    ///< where it was measured (records::machineText)
  /// What else the file says of itself.
  std::map<std::string, std::string> notes = {};

  /// 16 hexadecimal digits, of everything.
  std::string key() const;
};

struct ReadAdapter {
  Adapter adapter;
  /// Ok, or why it can't be used with this compiler: other words, another grammar.
  Status vocabulary;
};
/// Errors, with the file: not such a file, or a damaged one.
Result<ReadAdapter> readAdapter(const std::string& path);
/// The file is whole or not there.
Status writeAdapter(const Adapter& adapter, const std::string& path);

/// Errors: it is another model's.
Status checkBase(const Adapter& adapter, const Weights& base);
/// The model with the adapter's matrices added to its own: W + (alpha / rank) A B, summed in order, the same bits on every machine.
/// Errors: another model's; parameters that are missing, unknown, of other dims, or not finite.
Result<Weights> adapted(const Weights& base, const Adapter& adapter);

}  // namespace locution::generator::tlm
