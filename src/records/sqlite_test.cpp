// What only a file can be: missing, foreign, damaged, read-only, left behind by a killed process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "records/test_stores.h"

namespace locution::records {
namespace {

using ::testing::HasSubstr;
using testing::opened;
using testing::RecordMaker;
using ::testing::StartsWith;
using testing::TemporaryFolder;

std::string bytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

class SqliteTest : public ::testing::Test {
 protected:
  void refused(const std::string& path, Store::Open mode, const std::string& message) {
    auto store = Store::open(path, mode);
    ASSERT_FALSE(store.isOk());
    EXPECT_EQ(store.status().message(), path + ": " + message);
  }
  void fill(const std::string& path, int records) {
    auto store = opened(path);
    RecordMaker make(*store);
    std::vector<Record> all;
    for (int i = 0; i < records; ++i) all.push_back(make(i));
    ASSERT_EQ(*store->addAll(all), records);
  }
  TemporaryFolder folder;
  std::string path = folder / "records.db";
};

TEST_F(SqliteTest, AMissingFileIsMadeOnlyWhenAsked) {
  refused(path, Store::Open::Existing, "no such file");
  refused(path, Store::Open::Read, "no such file");
  EXPECT_FALSE(std::filesystem::exists(path));
  refused(folder / "no/such/folder.db", Store::Open::Create, "can't be opened: unable to open database file");
  refused(folder / "", Store::Open::Create, "is a folder");
  fill(path, 1);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + "-wal")) << "the log is gone with the last that closes";
}

TEST_F(SqliteTest, ForeignFilesStayAsTheyAre) {
  std::string text =
      "just some text that is longer than a header of a database would be ........................................";
  write(path, text);
  for (auto mode : {Store::Open::Create, Store::Open::Existing, Store::Open::Read})
    refused(path, mode, "is not a database of records");
  EXPECT_EQ(bytesOf(path), text);
  std::string other = folder / "other.db";
  sqlite3* db = nullptr;
  sqlite3_open(other.c_str(), &db);
  sqlite3_exec(db, "CREATE TABLE cities (name TEXT)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  std::string before = bytesOf(other);
  for (auto mode : {Store::Open::Create, Store::Open::Existing, Store::Open::Read})
    refused(other, mode, "is a SQLite database, but not one of records");
  EXPECT_EQ(bytesOf(other), before);
}

TEST_F(SqliteTest, ANewerVersionIsNotTouched) {
  fill(path, 1);
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db, "UPDATE meta SET value = 99", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  refused(path, Store::Open::Create, "its tables have version 99, this program knows version 1");
}

TEST_F(SqliteTest, AnEmptyFileIsAnEmptyDatabase) {
  write(path, "");
  refused(path, Store::Open::Read, "holds no records yet");
  EXPECT_EQ(*opened(path)->count({}), 0);
}

TEST_F(SqliteTest, DamageIsAMessageNotARecord) {
  fill(path, 200);
  std::string whole = bytesOf(path);
  ASSERT_GT(whole.size(), 8u * 8192);
  EXPECT_EQ(*opened(path)->verify(), 200);
  // Byte by byte of what a page can hold: structure, text, numbers.
  int found = 0;
  for (size_t page = 1; page * 8192 < whole.size(); ++page)
    for (size_t offset : {0, 5, 9, 4000, 8000, 8100}) {
      std::string spoilt = whole;
      char& byte = spoilt[page * 8192 + offset];
      if (byte == 0 && offset >= 4000) continue;
      byte = static_cast<char>(byte ^ 0x55);
      std::remove((path + "-wal").c_str());
      std::remove((path + "-shm").c_str());
      write(path, spoilt);
      auto store = Store::open(path, Store::Open::Existing);
      Status status = store.isOk() ? (*store)->verify().status() : store.status();
      if (status.isOk()) continue;  // unused space
      ++found;
      EXPECT_THAT(status.message(), StartsWith(path + ": "));
      EXPECT_THAT(status.message(), ::testing::AnyOf(HasSubstr("damaged"), HasSubstr("not a database")));
    }
  EXPECT_GT(found, 20);
  write(path, whole.substr(0, 3 * 8192));
  auto store = Store::open(path, Store::Open::Existing);
  Status status = store.isOk() ? (*store)->verify().status() : store.status();
  EXPECT_THAT(status.message(), HasSubstr("is damaged"));
}

TEST_F(SqliteTest, AChangedNumberIsFoundByTheId) {
  fill(path, 10);
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db, "UPDATE records SET ratio = ratio * 0.9 WHERE time = 1796000004", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  auto verified = opened(path)->verify();
  ASSERT_FALSE(verified.isOk());
  EXPECT_THAT(verified.status().message(), HasSubstr("is not what its id says"));
}

TEST_F(SqliteTest, ReadsWhatCannotBeWritten) {
  fill(path, 3);
  chmod(path.c_str(), 0444);
  EXPECT_EQ(*opened(path, Store::Open::Read)->count({}), 3);
  auto store = opened(path, Store::Open::Read);
  RecordMaker make(*opened(folder / "other.db"));
  EXPECT_FALSE(store->add(make(7)).isOk());
  store.reset();
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  if (geteuid() == 0) return;  // who may write everywhere
  chmod((folder / "").c_str(), 0555);
  EXPECT_EQ(*opened(path, Store::Open::Read)->count({}), 3);
  chmod((folder / "").c_str(), 0755);
}

TEST_F(SqliteTest, ReadsWhileAnotherWrites) {
  fill(path, 3);
  auto writer = opened(path);
  auto reader = opened(path, Store::Open::Read);
  RecordMaker make(*writer);
  EXPECT_TRUE(*writer->add(make(100)));
  EXPECT_EQ(*reader->count({}), 4);
}

}  // namespace
}  // namespace locution::records
