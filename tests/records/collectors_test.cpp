// Collectors that share a database do together what one would do alone, though some are killed at it.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "records/test_stores.h"
#include "support/hash.h"
#include "workers.h"

namespace locution::records {
namespace {

using testing::full;
using testing::opened;
using testing::PostgresPlace;
using testing::RecordMaker;
using testing::SqlitePlace;
using testing::Worker;

constexpr int kTasks = 60;

/// What the tasks of a seed are, every collector finds by itself.
std::vector<Record> measured(const RecordMaker& make, uint64_t seed, int task, int64_t now) {
  std::mt19937_64 random(hashText("task", seed + static_cast<uint64_t>(task)));
  std::vector<Record> records;
  for (int i = 0; i < 4; ++i) {
    Record& r = records.emplace_back(make(static_cast<int>(random() % 1000)));
    r.sentence = "plan " + std::to_string(random() % 1000);
    r.time = now;  // each measures for itself: the records differ, what was measured doesn't
  }
  return records;
}

void collect(const std::string& where, const std::string& name, uint64_t seed,
             const std::function<void(const std::string&)>& say) {
  auto store = opened(where);
  RecordMaker make(*store);
  bool open = true;
  while (open) {
    open = false;
    for (int task = 0; task < kTasks; ++task) {
      std::string key = "collection 7/" + std::to_string(task);
      Claim claim = *store->claim(key, name, 0.5);
      open = open || claim != Claim::Done;
      if (claim != Claim::Mine) continue;
      usleep(2000);
      auto now = static_cast<int64_t>(hashText(name, static_cast<uint64_t>(task)) % 1000);
      if (*store->finish(key, name, measured(make, seed, task, now))) say(key);
    }
    if (open) usleep(20000);
  }
}

std::multiset<std::pair<std::string, std::string>> sentences(const std::string& where) {
  std::multiset<std::pair<std::string, std::string>> found;
  std::vector<Record> records = *opened(where)->all({});
  for (const Record& r : records) found.emplace(r.workload, r.sentence);
  return found;
}

template <typename Place>
class CollectorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = Place::missing(); !why.empty()) GTEST_SKIP() << why;
  }
};
struct PlaceName {
  template <typename Place>
  static std::string GetName(int) {
    return std::is_same_v<Place, SqlitePlace> ? "Sqlite" : "Postgres";
  }
};
using Places = ::testing::Types<SqlitePlace, PostgresPlace>;
TYPED_TEST_SUITE(CollectorsTest, Places, PlaceName);

TYPED_TEST(CollectorsTest, TwoMeasureWhatOneWould) {
  TypeParam alone, shared;
  {
    Worker one([&](const auto& say) { collect(alone.where(), "one", 7, say); });
    EXPECT_EQ(one.said().size(), static_cast<size_t>(kTasks));
  }
  Worker first([&](const auto& say) { collect(shared.where(), "first", 7, say); });
  Worker second([&](const auto& say) { collect(shared.where(), "second", 7, say); });
  std::vector<std::string> a = first.said(), b = second.said();
  EXPECT_EQ(a.size() + b.size(), static_cast<size_t>(kTasks)) << "a task was done twice or not at all";
  EXPECT_GT(std::min(a.size(), b.size()), 0u) << "one of them did it alone";
  EXPECT_EQ(sentences(alone.where()), sentences(shared.where()));
}

TYPED_TEST(CollectorsTest, KilledOnesLoseOnlyWhatTheyWereAt) {
  TypeParam alone, shared;
  {
    Worker one([&](const auto& say) { collect(alone.where(), "one", 8, say); });
    one.said();
  }
  std::mt19937 random(4);
  Worker steady([&](const auto& say) { collect(shared.where(), "steady", 8, say); });
  size_t reported = 0;
  for (int i = 0; i < (full() ? 30 : 6); ++i) {
    Worker victim([&](const auto& say) { collect(shared.where(), "victim " + std::to_string(i), 8, say); });
    victim.killAfter(static_cast<int>(random() % 80000));
    reported += victim.said().size();
  }
  reported += steady.said().size();
  // A victim may have been killed between the transaction and its report.
  EXPECT_LE(reported, static_cast<size_t>(kTasks));
  EXPECT_EQ(sentences(alone.where()), sentences(shared.where()));
}

}  // namespace
}  // namespace locution::records
