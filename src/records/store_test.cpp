#include "records/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "records/test_stores.h"
#include "support/hash.h"

namespace locution::records {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::opened;
using testing::PostgresPlace;
using testing::RecordMaker;
using testing::SqlitePlace;

template <typename Place>
class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = Place::missing(); !why.empty()) GTEST_SKIP() << why;
    place = std::make_unique<Place>();
    store = opened(place->where());
    make = std::make_unique<RecordMaker>(*store);
  }
  /// A record of one sentence that is faster the smaller `ratio` is.
  Record timed(const std::string& sentence, double ratio, int64_t time = 1000) const {
    Record r = (*make)(0);
    r.outcome = Outcome::Ok;
    r.sentence = sentence;
    r.samples = {ratio * 1e-5};
    r.ratio = ratio;
    r.incumbent = make->incumbent;
    r.time = time;
    return r;
  }
  std::unique_ptr<Place> place;
  std::unique_ptr<Store> store;
  std::unique_ptr<RecordMaker> make;
};
struct PlaceName {
  template <typename Place>
  static std::string GetName(int) {
    return std::is_same_v<Place, SqlitePlace> ? "Sqlite" : "Postgres";
  }
};
using Places = ::testing::Types<SqlitePlace, PostgresPlace>;
TYPED_TEST_SUITE(StoreTest, Places, PlaceName);

TYPED_TEST(StoreTest, KeepsEveryFieldToTheBit) {
  Record r = (*this->make)(1);
  r.seed = 0xfedcba9876543210u;
  r.sentence = "cpu v64 \"quoted\" | '; DROP TABLE records; -- \xc3\xa9\xf0\x9f\x98\x80\n\ttwo lines $1 ?";
  r.samples = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1.25e-5};
  r.ratio = 0.30000000000000004;
  r.spread = 0.0;
  r.time = 4102444800;
  ASSERT_TRUE(*this->store->add(r));
  this->store = opened(this->place->where(), Store::Open::Existing);
  EXPECT_THAT(*this->store->all({}), ElementsAre(r));
}

TYPED_TEST(StoreTest, KeepsFailuresThatHaveNoTimes) {
  Record r = (*this->make)(1);
  r.outcome = Outcome::Crash;
  r.samples.clear();
  r.incumbent.clear();
  r.ratio.reset();
  r.spread.reset();
  ASSERT_TRUE(*this->store->add(r));
  EXPECT_THAT(*this->store->all({}), ElementsAre(r));
}

TYPED_TEST(StoreTest, AddingAgainDoesNothing) {
  std::vector<Record> records = {(*this->make)(1), (*this->make)(2), (*this->make)(1)};
  EXPECT_EQ(*this->store->addAll(records), 2);
  EXPECT_EQ(*this->store->addAll(records), 0);
  EXPECT_FALSE(*this->store->add(records[1]));
  // Another measurement of the same sentence in the same second is one of its own.
  records[1].samples[0] *= 1.5;
  EXPECT_TRUE(*this->store->add(records[1]));
  EXPECT_EQ(*this->store->count({}), 3);
}

TYPED_TEST(StoreTest, AddsAllOrNone) {
  std::vector<Record> records = {(*this->make)(1), (*this->make)(2)};
  records[1].workload = keyOf("nobody put this");
  auto added = this->store->addAll(records);
  ASSERT_FALSE(added.isOk());
  EXPECT_THAT(added.status().message(), HasSubstr("holds no workload " + records[1].workload));
  EXPECT_EQ(*this->store->count({}), 0);
}

TYPED_TEST(StoreTest, TextsAreKeptOnceByTheirHash) {
  std::string text(20000, 'x');
  text += "\n\"\\ \xe2\x82\xac";
  std::string key = *this->store->put(TextKind::Workload, text);
  EXPECT_EQ(key, keyOf(text));
  EXPECT_EQ(*this->store->put(TextKind::Workload, text), key);
  EXPECT_EQ(**this->store->text(TextKind::Workload, key), text);
  EXPECT_EQ(*this->store->text(TextKind::Target, key), std::nullopt);
  std::vector<std::string> keys;
  ASSERT_TRUE(this->store->forEachText(TextKind::Workload, [&](const std::string& k, const std::string&) {
    keys.push_back(k);
    return Status::ok();
  }));
  std::vector<std::string> want = this->make->workloads;
  want.push_back(key);
  std::sort(want.begin(), want.end());
  EXPECT_EQ(keys, want);
}

TYPED_TEST(StoreTest, RefusesWhatIsNoText) {
  for (const char* bytes : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ab\xe2\x82"}) {
    EXPECT_FALSE(this->store->put(TextKind::Workload, bytes).isOk());
    Record r = (*this->make)(1);
    r.sentence = bytes;
    auto added = this->store->add(r);
    ASSERT_FALSE(added.isOk());
    EXPECT_THAT(added.status().message(), HasSubstr("a record's sentence is not text in UTF-8"));
  }
  EXPECT_FALSE(this->store->put(TextKind::Workload, std::string("a\0b", 3)).isOk());
}

TYPED_TEST(StoreTest, OrderDependsOnContentsAlone) {
  std::vector<Record> records;
  for (int i = 0; i < 4500; ++i) records.push_back((*this->make)(i));  // more than two pages
  ASSERT_TRUE(this->store->addAll(records).isOk());
  TypeParam second;
  auto other = opened(second.where());
  RecordMaker same(*other);
  std::reverse(records.begin(), records.end());
  ASSERT_TRUE(other->addAll(records).isOk());
  std::vector<Record> here = *this->store->all({});
  EXPECT_EQ(here.size(), 4500u);
  EXPECT_EQ(here, *other->all({}));
  EXPECT_TRUE(std::is_sorted(here.begin(), here.end(), [](const Record& a, const Record& b) {
    return std::tuple(a.workload, a.target, a.id()) < std::tuple(b.workload, b.target, b.id());
  }));
}

TYPED_TEST(StoreTest, VisitorsMayUseTheStore) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(this->store->add((*this->make)(i)).isOk());
  int seen = 0;
  ASSERT_TRUE(this->store->forEach({}, [&](const Record& r, bool) {
    ++seen;
    return this->store->text(TextKind::Workload, r.workload).status();
  }));
  EXPECT_EQ(seen, 10);
}

TYPED_TEST(StoreTest, FiltersByEachField) {
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) records.push_back((*this->make)(i));
  ASSERT_TRUE(this->store->addAll(records).isOk());
  auto expectCount = [&](const Filter& filter, auto&& holds) {
    auto want = std::count_if(records.begin(), records.end(), holds);
    EXPECT_GT(want, 0);
    EXPECT_LT(want, 60);
    EXPECT_EQ(*this->store->count(filter), want);
    std::vector<Record> found = *this->store->all(filter);
    EXPECT_TRUE(std::all_of(found.begin(), found.end(), holds));
  };
  const Record& r = records[11];
  expectCount({.workload = r.workload}, [&](const Record& x) { return x.workload == r.workload; });
  expectCount({.target = r.target}, [&](const Record& x) { return x.target == r.target; });
  expectCount({.sentence = r.sentence}, [&](const Record& x) { return x.sentence == r.sentence; });
  expectCount({.proposer = r.proposer}, [&](const Record& x) { return x.proposer == r.proposer; });
  expectCount({.model = r.model}, [&](const Record& x) { return x.model == r.model; });
  expectCount({.compiler = r.compiler}, [&](const Record& x) { return x.compiler == r.compiler; });
  expectCount({.code = r.code}, [&](const Record& x) { return x.code == r.code; });
  expectCount({.outcome = Outcome::Wrong}, [&](const Record& x) { return x.outcome == Outcome::Wrong; });
  expectCount({.workload = r.workload, .target = r.target, .outcome = r.outcome}, [&](const Record& x) {
    return x.workload == r.workload && x.target == r.target && x.outcome == r.outcome;
  });
  EXPECT_EQ(*this->store->count({.machine = this->make->machine}), 60);
  EXPECT_EQ(*this->store->count({.machine = keyOf("another")}), 0);
  int64_t sum = 0;
  std::vector<Count> counts = *this->store->counts();
  for (const Count& c : counts) {
    EXPECT_EQ(c.records, *this->store->count({.workload = c.workload, .target = c.target, .outcome = c.outcome}));
    sum += c.records;
  }
  EXPECT_EQ(sum, 60);
}

TYPED_TEST(StoreTest, BestIsTheLowestMedianOfASentence) {
  // "lucky" has the fastest single measurement, "steady" the fastest median.
  for (double ratio : {0.5, 1.3, 1.2}) ASSERT_TRUE(*this->store->add(this->timed("lucky", ratio)));
  for (double ratio : {0.8, 0.9, 0.85}) ASSERT_TRUE(*this->store->add(this->timed("steady", ratio)));
  ASSERT_TRUE(*this->store->add(this->timed("slow", 2)));
  std::vector<Best> best = *this->store->best(this->make->workloads[0], this->make->targets[0], {}, Rank::Ratio, 10);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].record, this->timed("steady", 0.85));
  EXPECT_EQ(best[0].value, 0.85);
  EXPECT_EQ(best[0].measurements, 3);
  EXPECT_EQ(best[1].record.sentence, "lucky");
  EXPECT_EQ(best[2].record.sentence, "slow");
  EXPECT_EQ(this->store->best(this->make->workloads[0], this->make->targets[0])->size(), 1u);
  EXPECT_TRUE(this->store->best(this->make->workloads[1], this->make->targets[0])->empty());
}

TYPED_TEST(StoreTest, BestNeverFailed) {
  ASSERT_TRUE(*this->store->add(this->timed("wrong once", 0.1)));
  Record failed = this->timed("wrong once", 0.1, 2000);
  failed.outcome = Outcome::Wrong;
  ASSERT_TRUE(*this->store->add(failed));
  ASSERT_TRUE(*this->store->add(this->timed("right", 0.9)));
  std::vector<Best> best = *this->store->best(this->make->workloads[0], this->make->targets[0], {}, Rank::Ratio, 10);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].record.sentence, "right");
}

TYPED_TEST(StoreTest, BestBySecondsTakesRecordsWithoutARatio) {
  Record alone = this->timed("alone", 0.2);
  alone.ratio.reset();
  ASSERT_TRUE(*this->store->add(alone));
  ASSERT_TRUE(*this->store->add(this->timed("in turns", 0.9)));
  std::string workload = this->make->workloads[0], target = this->make->targets[0];
  EXPECT_EQ(this->store->best(workload, target)->at(0).record.sentence, "in turns");
  EXPECT_EQ(this->store->best(workload, target, {.machine = this->make->machine}, Rank::Seconds)->at(0).record.sentence,
            "alone");
  EXPECT_TRUE(this->store->best(workload, target, {.machine = keyOf("another")}, Rank::Seconds)->empty());
}

TYPED_TEST(StoreTest, TimesOfChangedCodeAreNotMixedWithOthers) {
  std::string workload = this->make->workloads[0], target = this->make->targets[0];
  Record before = this->timed("s", 0.5), after = this->timed("s", 0.7, 2000);
  before.code = "old";
  before.compiler = "1";
  after.code = "new";
  after.compiler = "2";
  ASSERT_TRUE(*this->store->add(before));
  ASSERT_TRUE(*this->store->add(after));
  EXPECT_EQ(*this->store->codeIs(workload, target, "s", "new", "2"), 1);
  EXPECT_EQ(*this->store->codeIs(workload, target, "s", "new", "2"), 0);
  EXPECT_EQ(this->store->best(workload, target)->at(0).value, 0.7);
  EXPECT_THAT(*this->store->all({}), ElementsAre(after));
  EXPECT_THAT(*this->store->all({.stale = Filter::Stale::Only}), ElementsAre(before));
  EXPECT_EQ(*this->store->count({.stale = Filter::Stale::Include}), 2);
  // The code generator went back to what it made before.
  EXPECT_EQ(*this->store->codeIs(workload, target, "s", "old", "3"), 2);
  EXPECT_THAT(*this->store->all({}), ElementsAre(before));
}

TYPED_TEST(StoreTest, AnotherCompilerMakesTimesStaleUntilTheCodeIsKnownToBeTheSame) {
  std::string workload = this->make->workloads[0], target = this->make->targets[0];
  Record r = this->timed("same code", 0.5), other = this->timed("other code", 0.4);
  r.compiler = other.compiler = "1";
  ASSERT_TRUE(*this->store->add(r));
  ASSERT_TRUE(*this->store->add(other));
  EXPECT_EQ(*this->store->compilerIs("1"), 0);
  EXPECT_EQ(*this->store->compilerIs("2"), 2);
  EXPECT_EQ(*this->store->count({}), 0);
  EXPECT_EQ(*this->store->codeIs(workload, target, "same code", r.code, "2"), 1);
  EXPECT_THAT(*this->store->all({}), ElementsAre(r));
  // That was learnt for good.
  EXPECT_EQ(*this->store->compilerIs("2"), 0);
  EXPECT_THAT(*this->store->all({}), ElementsAre(r));
}

TYPED_TEST(StoreTest, OneWorkerHasATaskUntilItsLeaseEnds) {
  Store& store = *this->store;
  auto other = opened(this->place->where());
  EXPECT_EQ(*store.claim("t", "a", 0.4), Claim::Mine);
  EXPECT_EQ(*other->claim("t", "b", 60), Claim::Busy);
  EXPECT_EQ(*store.claim("t", "a", 0.4), Claim::Mine) << "a renewal";
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(*other->claim("t", "b", 60), Claim::Mine);
  std::vector<Record> records = {(*this->make)(1)};
  EXPECT_FALSE(*store.finish("t", "a", records)) << "it was b's by then";
  EXPECT_EQ(*store.count({}), 0);
  EXPECT_TRUE(*other->finish("t", "b", records));
  EXPECT_TRUE(*other->finish("t", "b", records)) << "told again";
  EXPECT_EQ(*store.count({}), 1);
  EXPECT_EQ(*store.claim("t", "a", 60), Claim::Done);
  EXPECT_EQ(*store.claim("t", "b", 60), Claim::Done);
  EXPECT_FALSE(*store.finish("t", "a", records));
}

TYPED_TEST(StoreTest, AReleasedTaskIsFree) {
  EXPECT_EQ(*this->store->claim("t", "a", 60), Claim::Mine);
  EXPECT_TRUE(this->store->release("t", "b")) << "not b's: nothing happens";
  EXPECT_EQ(*this->store->claim("t", "b", 60), Claim::Busy);
  EXPECT_TRUE(this->store->release("t", "a"));
  EXPECT_EQ(*this->store->claim("t", "b", 60), Claim::Mine);
}

TYPED_TEST(StoreTest, NamesDoneTasks) {
  for (const char* task : {"run/2", "run/10", "runs/1", "run/\xc3\xa9", "run/open", "other"}) {
    ASSERT_EQ(*this->store->claim(task, "a", 60), Claim::Mine);
    if (std::string(task) != "run/open") {
      ASSERT_TRUE(*this->store->finish(task, "a"));
    }
  }
  EXPECT_THAT(*this->store->doneTasks("run/"), ElementsAre("run/10", "run/2", "run/\xc3\xa9"));
  EXPECT_EQ(this->store->doneTasks("")->size(), 5u);
}

TYPED_TEST(StoreTest, AFailedTaskOfRecordsStaysOpen) {
  EXPECT_EQ(*this->store->claim("t", "a", 60), Claim::Mine);
  Record r = (*this->make)(1);
  r.machine = keyOf("nobody put this");
  EXPECT_FALSE(this->store->finish("t", "a", {&r, 1}).isOk());
  EXPECT_EQ(*this->store->claim("t", "b", 60), Claim::Busy);
  EXPECT_TRUE(this->store->doneTasks("")->empty());
}

TYPED_TEST(StoreTest, ThreadsThatOpenAndAddAtOnceLoseNothing) {
  TypeParam fresh;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto store = opened(fresh.where());
      RecordMaker make(*store);
      for (int i = 0; i < 25; ++i) EXPECT_TRUE(*store->add(make(100 * t + i)));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(*opened(fresh.where())->count({}), 100);
}

TYPED_TEST(StoreTest, VerifyCountsWhatIsWhole) {
  std::vector<Record> records;
  for (int i = 0; i < 30; ++i) records.push_back((*this->make)(i));
  ASSERT_TRUE(this->store->addAll(records).isOk());
  EXPECT_EQ(*this->store->verify(), 30);
}

}  // namespace
}  // namespace locution::records
