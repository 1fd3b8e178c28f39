// The fields of a record, once: columns, JSON, hash and checks are all made from this list. Its order is part of a record's id; a new
// field goes to the end, and counts for the id only where it differs from its default.
#pragma once

#include "records/record.h"

namespace locution::records {

template <typename R, typename Visit>
void forEachField(R&& record, const Visit& visit) {
  visit("workload", record.workload);
  visit("target", record.target);
  visit("machine", record.machine);
  visit("sentence", record.sentence);
  visit("proposer", record.proposer);
  visit("seed", record.seed);
  visit("model", record.model);
  visit("outcome", record.outcome);
  visit("samples", record.samples);
  visit("incumbent", record.incumbent);
  visit("ratio", record.ratio);
  visit("spread", record.spread);
  visit("compiler", record.compiler);
  visit("code", record.code);
  visit("grammar", record.grammar);
  visit("vocabulary_count", record.vocabularyCount);
  visit("vocabulary", record.vocabulary);
  visit("time", record.time);
}

}  // namespace locution::records
