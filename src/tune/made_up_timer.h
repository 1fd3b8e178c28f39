// For tests: a machine on which a plan's time is a function of its text, and a database that starts empty.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "records/store.h"
#include "support/hash.h"
#include "tune/plan_timer.h"

namespace locution::tune {

// Times in [0.5, 2.5] of the incumbent's by the plan's hash; some fail. Remembers what it was asked.
class MadeUpTimer : public PlanTimer {
 public:
  MadeUpTimer(std::vector<BenchTimer::Kernel> kernels, std::vector<std::pair<size_t, std::string>>* log, double fastest)
      : kernels_(std::move(kernels)), log_(log), fastest_(fastest) {}

  Result<std::vector<Measurement>> measure(size_t kernel, const std::vector<schedule::Plan>& plans) override {
    if (kernels_[kernel].computation->name == "broken") return Status::error("its operands can't be made up");
    std::vector<Measurement> out;
    for (const schedule::Plan& p : plans) {
      const std::string text = p.str();
      log_->emplace_back(kernel, text);
      Measurement m;
      const bool isIncumbent = p == kernels_[kernel].incumbent;
      const uint64_t h = hashText(text, kernel);
      m.codeHash = h;
      if (!isIncumbent && h % 11 == 0) {
        m.outcome = Outcome::Wrong;
        out.push_back(m);
        continue;
      }
      m.outcome = Outcome::Ok;
      m.ratio = isIncumbent ? 1 : fastest_ + 2 * static_cast<double>(h % 999983) / 999983;
      m.seconds = 1e-4 * static_cast<double>(kernel + 1) * m.ratio;
      m.samples = {m.seconds, m.seconds};
      m.incumbent = {m.seconds / m.ratio, m.seconds / m.ratio};
      out.push_back(m);
    }
    return out;
  }

 private:
  std::vector<BenchTimer::Kernel> kernels_;
  std::vector<std::pair<size_t, std::string>>* log_;
  double fastest_;
};

inline std::unique_ptr<records::Store> emptyStore() {
  static int count = 0;
  const std::string file =
      testing::TempDir() + "tune_test_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".db";
  std::remove(file.c_str());
  auto store = records::Store::open(file);
  EXPECT_TRUE(store.isOk()) << store.status().message();
  return std::move(*store);
}

}  // namespace locution::tune
