// The scheduler that looks plans up: which of what it finds it takes.
#include "generator/search/from_records.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "generator/random.h"
#include "generator/rules.h"
#include "generator/schedule_check.h"
#include "language/sentence.h"
#include "space/workload.h"

namespace locution::generator {
namespace {

using namespace test;  // NOLINT: helpers

Computation scaled(int64_t n) {
  Computation c;
  c.name = "scaled";
  auto a = makeBuffer("a", {DType::F32, 1}, {n, 50});
  auto out = makeBuffer("out", {DType::F32, 1}, {n, 50});
  c.inputs = {a};
  Stage s;
  s.out = out;
  s.axes = axesOf({n, 50}, "i");
  s.body = load(a, {s.axes[0].var, s.axes[1].var}) + load(a, {s.axes[0].var, s.axes[1].var});
  c.stages = {s};
  c.outputs = {out};
  return c;
}

class FromRecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = testing::TempDir() + "from_records_test_" + std::to_string(getpid()) + ".db";
    remove();
    auto opened = records::Store::open(file_);
    ASSERT_TRUE(opened.isOk()) << opened.status().message();
    store_ = std::move(*opened);
    for (uint64_t seed = 0; walks_.size() < 3; ++seed) {
      const space::Choices walk = randomWalk(space_, seed).choices();
      if (walk != analytic_ && std::find(walks_.begin(), walks_.end(), walk) == walks_.end()) walks_.push_back(walk);
    }
  }
  void TearDown() override { remove(); }
  void remove() const {
    for (const char* end : {"", "-wal", "-shm"}) std::remove((file_ + end).c_str());
  }

  void measured(const space::Choices& walk, double ratio, records::Outcome outcome = records::Outcome::Ok) {
    records::Record r;
    r.workload = *store_->put(records::TextKind::Workload, space::canonical(kernel_).text);
    r.target = *store_->put(records::TextKind::Target, target_.str());
    r.machine = *store_->put(records::TextKind::Machine, "model = test\n");
    r.incumbent = *store_->put(records::TextKind::Incumbent, language::planText(analytic_));
    r.sentence = language::planText(walk);
    r.proposer = "random";
    r.outcome = outcome;
    r.samples = {1e-5 * ratio};
    r.ratio = ratio;
    r.time = ++time_;
    auto added = store_->add(r);
    ASSERT_TRUE(added.isOk()) << added.status().message();
  }

  schedule::Plan planOf(const space::Choices& walk) const { return *space::planOf(space_, walk); }
  std::unique_ptr<FromRecords> scheduler() { return makeFromRecords(std::move(store_)); }

  TargetSpec target_ = wide();
  Computation kernel_ = scaled(30);
  space::Space space_{kernel_, target_};
  space::Choices analytic_ = analyticWalk(space_).choices();
  std::vector<space::Choices> walks_;
  std::string file_;
  std::unique_ptr<records::Store> store_;
  int64_t time_ = 0;
};

TEST_F(FromRecordsTest, TakesTheFastest) {
  measured(walks_[0], 0.9);
  measured(walks_[1], 0.7);
  measured(walks_[2], 1.3);
  const auto s = scheduler();
  EXPECT_EQ(s->propose(kernel_, target_), planOf(walks_[1]));
  EXPECT_EQ(s->report().found, 1);
}

TEST_F(FromRecordsTest, TrustsWhatWasMeasuredOften) {
  measured(walks_[0], 0.7);
  for (double ratio : {0.79, 0.8, 0.82}) measured(walks_[1], ratio);
  EXPECT_EQ(scheduler()->propose(kernel_, target_), planOf(walks_[1]));
}

TEST_F(FromRecordsTest, LeavesOutWhatFailedOnce) {
  measured(walks_[0], 0.7);
  measured(walks_[0], 0.7, records::Outcome::Wrong);
  measured(walks_[1], 0.9);
  EXPECT_EQ(scheduler()->propose(kernel_, target_), planOf(walks_[1]));
}

TEST_F(FromRecordsTest, TheAnalyticPlanStaysWhereNothingIsFaster) {
  measured(walks_[0], 0.995);
  const auto s = scheduler();
  EXPECT_EQ(s->propose(kernel_, target_), planOf(analytic_));
  EXPECT_EQ(s->report().unknown, 0);
}

TEST_F(FromRecordsTest, OtherKernelsAndTargetsAreUnknown) {
  measured(walks_[0], 0.5);
  const auto s = scheduler();
  const Computation other = scaled(31);
  EXPECT_EQ(s->propose(other, target_), makeAnalytic()->propose(other, target_));
  EXPECT_EQ(s->propose(kernel_, narrow()), makeAnalytic()->propose(kernel_, narrow()));
  EXPECT_EQ(s->report().unknown, 2);
  EXPECT_TRUE(s->report().status.isOk());
}

}  // namespace
}  // namespace locution::generator
