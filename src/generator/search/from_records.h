// The best plan that a database of records knows of each kernel; the analytic plan where it knows none that is faster.
#pragma once

#include <memory>
#include <string>

#include "generator/scheduler.h"
#include "records/store.h"

namespace locution::generator {

class FromRecords : public Scheduler {
 public:
  /// What the kernels were found to be. A kernel counts each time it is asked about.
  struct Report {
    int64_t found = 0;    ///< got the plan of a record
    int64_t unknown = 0;  ///< have no records on this target
    Status status;        ///< the first error of the database; the analytic plan was taken
  };
  virtual Report report() const = 0;
};

std::unique_ptr<FromRecords> makeFromRecords(std::unique_ptr<records::Store> store);

}  // namespace locution::generator
