// A process that adds records is killed at random moments, from its first touch of the file on. What it had been told is stored must be
// there afterwards; nothing may be damaged; the file must open.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "records/test_stores.h"
#include "workers.h"

namespace locution::records {
namespace {

using testing::full;
using testing::opened;
using testing::PostgresPlace;
using testing::RecordMaker;
using testing::SqlitePlace;
using testing::TemporaryFolder;
using testing::TestServer;
using testing::Worker;

/// Adds in every way there is, and names what has been stored: record ids, tasks.
void addForever(const std::string& where, int round, const std::function<void(const std::string&)>& say) {
  auto store = opened(where);
  RecordMaker make(*store);
  std::string worker = "worker " + std::to_string(round);
  for (int number = round * 100000;; number += 20) {
    Record one = make(number);
    if (*store->add(one)) say(one.id());
    std::vector<Record> some;
    for (int i = 1; i < 10; ++i) some.push_back(make(number + i));
    if (!store->addAll(some).isOk()) _exit(1);
    for (const Record& r : some) say(r.id());
    std::string task = "task " + std::to_string(number);
    if (*store->claim(task, worker, 60) != Claim::Mine) _exit(2);
    some.clear();
    for (int i = 10; i < 20; ++i) some.push_back(make(number + i));
    if (!*store->finish(task, worker, some)) _exit(3);
    say(task);
    for (const Record& r : some) say(r.id());
  }
}

/// The place after the kill, looked at by a process that comes later.
void expectWhole(const std::string& where, const std::set<std::string>& reported) {
  auto store = Store::open(where, Store::Open::Existing);
  ASSERT_TRUE(store.isOk()) << store.status().message();
  auto verified = (*store)->verify();
  ASSERT_TRUE(verified.isOk()) << verified.status().message();
  std::set<std::string> there;
  ASSERT_TRUE((*store)->forEach({.stale = Filter::Stale::Include}, [&](const Record& r, bool) {
    there.insert(r.id());
    return Status::ok();
  }));
  std::vector<std::string> done = *(*store)->doneTasks("");
  there.insert(done.begin(), done.end());
  for (const std::string& what : reported) EXPECT_TRUE(there.contains(what)) << "lost: " << what;
  // Of a transaction all is there or nothing: see addForever for how the numbers belong together.
  std::map<int64_t, std::array<int, 3>> rounds;
  ASSERT_TRUE((*store)->forEach({.stale = Filter::Stale::Include}, [&](const Record& r, bool) {
    int64_t number = r.time - RecordMaker::kFirstTime, place = number % 20;
    ++rounds[number - place][place == 0 ? 0 : place < 10 ? 1 : 2];
    return Status::ok();
  }));
  size_t finished = 0;
  for (const auto& [number, counts] : rounds) {
    EXPECT_EQ(counts[0], 1) << number;
    EXPECT_TRUE(counts[1] == 0 || counts[1] == 9) << "half a batch: " << number;
    EXPECT_EQ(counts[2], there.contains("task " + std::to_string(number)) ? 10 : 0) << number;
    finished += counts[2] == 10;
  }
  EXPECT_EQ(finished, done.size());
}

TEST(KillTest, AFileSurvives) {
  std::mt19937 random(1);
  TemporaryFolder folder;
  std::set<std::string> reported;
  std::string path;
  int kills = full() ? 500 : 40, productive = 0;
  for (int round = 0; round < kills; ++round) {
    if (round % 20 == 0) {  // a new file: being made is a moment to be killed at too
      path = folder / (std::to_string(round) + ".db");
      reported.clear();
    }
    Worker worker([&](const auto& say) { addForever(path, round, say); });
    worker.killAfter(static_cast<int>(random() % (round % 20 == 0 ? 20000 : 60000)));
    int status = 0;
    std::vector<std::string> lines = worker.said(&status);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself: " << status;
    productive += !lines.empty();
    reported.insert(lines.begin(), lines.end());
    if (!std::filesystem::exists(path)) continue;  // killed before it got to it
    expectWhole(path, reported);
    if (HasFailure()) return;
  }
  EXPECT_GT(productive, kills / 4) << "most were killed before they had added anything";
}

TEST(KillTest, TwoWritersAtOnceSurvive) {
  std::mt19937 random(2);
  TemporaryFolder folder;
  std::string path = folder / "records.db";
  std::set<std::string> reported;
  for (int round = 0; round < (full() ? 100 : 10); ++round) {
    Worker first([&](const auto& say) { addForever(path, 2 * round, say); });
    Worker second([&](const auto& say) { addForever(path, 2 * round + 1, say); });
    first.killAfter(static_cast<int>(random() % 60000));
    std::vector<std::string> lines = first.said();
    reported.insert(lines.begin(), lines.end());
    second.killAfter(static_cast<int>(random() % 60000));
    lines = second.said();
    reported.insert(lines.begin(), lines.end());
    if (std::filesystem::exists(path)) expectWhole(path, reported);
    if (HasFailure()) return;
  }
}

TEST(KillTest, AServersClientsAreKilled) {
  if (std::string why = PostgresPlace::missing(); !why.empty()) GTEST_SKIP() << why;
  std::mt19937 random(3);
  std::string uri = TestServer::shared().freshDatabase();
  std::set<std::string> reported;
  for (int round = 0; round < (full() ? 100 : 10); ++round) {
    Worker worker([&](const auto& say) { addForever(uri, round, say); });
    worker.killAfter(static_cast<int>(random() % 200000));
    std::vector<std::string> lines = worker.said();
    reported.insert(lines.begin(), lines.end());
    expectWhole(uri, reported);
    if (HasFailure()) return;
  }
}

TEST(KillTest, AServerThatGoesIsAMessage) {
  if (std::string why = PostgresPlace::missing(); !why.empty()) GTEST_SKIP() << why;
  std::string uri = TestServer::shared().freshDatabase();
  auto store = opened(uri);
  RecordMaker make(*store);
  ASSERT_TRUE(*store->add(make(1)));
  TestServer::shared().crash();
  auto added = store->add(make(2));
  ASSERT_FALSE(added.isOk());
  EXPECT_NE(added.status().message().find(store->place() + ": "), std::string::npos) << added.status().message();
  EXPECT_EQ(added.status().message().find('\n'), std::string::npos);
  EXPECT_EQ(*opened(uri)->verify(), 1);
}

}  // namespace
}  // namespace locution::records
