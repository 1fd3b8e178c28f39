// Databases into one another and into files and back, over both back ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>

#include "records/json_lines.h"
#include "records/test_stores.h"

namespace locution::records {
namespace {

using ::testing::HasSubstr;
using testing::opened;
using testing::PostgresPlace;
using testing::RecordMaker;
using testing::SqlitePlace;
using testing::TemporaryFolder;

std::string bytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
// More than a page of reading and a batch of storing.
constexpr int kRecords = 2300;

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

template <typename Place>
class TransferTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = Place::missing(); !why.empty()) GTEST_SKIP() << why;
    place = std::make_unique<Place>();
    store = opened(place->where());
    RecordMaker make(*store);
    std::vector<Record> records;
    for (int i = 0; i < kRecords; ++i) {
      Record& r = records.emplace_back(make(i));
      // Doubles of every magnitude, by their bits.
      if (r.outcome == Outcome::Ok) r.samples.push_back(std::bit_cast<double>((r.seed % 0x7fe0000000000000u) + 1));
      r.sentence += i % 100 == 0 ? " \"\\\n\t\x01\x7f\xc3\xa9\xf0\x9f\x98\x80" : "";
    }
    ASSERT_TRUE(store->put(TextKind::Workload, "a workload without records").isOk());
    ASSERT_TRUE(store->addAll(records).isOk());
    ASSERT_TRUE(store->compilerIs("0.1.0").isOk());
  }
  void expectSame(Store& other) {
    EXPECT_EQ(*store->all({}), *other.all({}));
    EXPECT_EQ(*store->all({.stale = Filter::Stale::Only}), *other.all({.stale = Filter::Stale::Only}));
    EXPECT_EQ(*other.verify(), kRecords);
    EXPECT_TRUE(other.exportTo(folder / "again.jsonl"));
    EXPECT_TRUE(store->exportTo(folder / "first.jsonl"));
    EXPECT_TRUE(bytesOf(folder / "first.jsonl") == bytesOf(folder / "again.jsonl"));
  }
  std::unique_ptr<Place> place;
  std::unique_ptr<Store> store;
  TemporaryFolder folder;
};
struct PlaceName {
  template <typename Place>
  static std::string GetName(int) {
    return std::is_same_v<Place, SqlitePlace> ? "Sqlite" : "Postgres";
  }
};
using Places = ::testing::Types<SqlitePlace, PostgresPlace>;
TYPED_TEST_SUITE(TransferTest, Places, PlaceName);

TYPED_TEST(TransferTest, FilesGiveBackWhatWasStored) {
  size_t plain = 0;
  for (const char* name : {"r.jsonl", "r.jsonl.gz", "r.jsonl.zst"}) {
    std::string path = this->folder / name;
    ASSERT_TRUE(this->store->exportTo(path));
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
    size_t size = std::filesystem::file_size(path);
    if (plain == 0) plain = size;
    EXPECT_LT(size, path.ends_with("l") ? plain + 1 : plain / 4);
    auto other = opened(this->folder / (std::string(name) + ".db"));
    auto merged = other->importFrom(path);
    ASSERT_TRUE(merged.isOk()) << merged.status().message();
    EXPECT_EQ(merged->records, kRecords);
    EXPECT_EQ(merged->texts, 8);
    this->expectSame(*other);
    merged = other->importFrom(path);
    EXPECT_EQ(merged->records, 0);
    EXPECT_EQ(merged->present, kRecords);
    EXPECT_EQ(merged->texts, 0);
  }
}

TYPED_TEST(TransferTest, ImportsIntoItsOwnKind) {
  ASSERT_TRUE(this->store->exportTo(this->folder / "r.jsonl"));
  TypeParam empty;
  auto other = opened(empty.where());
  ASSERT_TRUE(other->importFrom(this->folder / "r.jsonl").isOk());
  this->expectSame(*other);
}

TYPED_TEST(TransferTest, MergesBothWaysToTheSame) {
  auto file = opened(this->folder / "part.db");
  RecordMaker make(*file);
  std::vector<Record> records;
  for (int i = 2000; i < 3000; ++i) {
    Record& r = records.emplace_back(make(i));
    r.model = "another";
  }
  ASSERT_TRUE(file->addAll(records).isOk());
  ASSERT_TRUE(file->compilerIs("0.1.0").isOk());
  auto merged = file->merge(*this->store);
  ASSERT_TRUE(merged.isOk()) << merged.status().message();
  EXPECT_EQ(merged->records, kRecords);
  EXPECT_EQ(merged->texts, 1);
  merged = this->store->merge(*file);
  ASSERT_TRUE(merged.isOk()) << merged.status().message();
  EXPECT_EQ(merged->records, 1000);
  EXPECT_EQ(merged->present, kRecords);
  EXPECT_EQ(*this->store->all({}), *file->all({}));
  EXPECT_EQ(*this->store->verify(), kRecords + 1000);
}

TYPED_TEST(TransferTest, ASelectionTakesTheTextsItNeeds) {
  std::vector<Record> some = *this->store->all({});
  Filter filter{.workload = some[0].workload, .outcome = Outcome::Wrong, .stale = Filter::Stale::Include};
  ASSERT_TRUE(this->store->exportTo(this->folder / "some.jsonl", filter));
  auto other = opened(this->folder / "some.db");
  auto merged = other->importFrom(this->folder / "some.jsonl");
  ASSERT_TRUE(merged.isOk()) << merged.status().message();
  EXPECT_EQ(merged->records, *this->store->count(filter));
  EXPECT_EQ(merged->texts, 3);  // a workload, a target, a machine: what failed has no incumbent
  EXPECT_EQ(*other->all(filter), *this->store->all(filter));
}

TYPED_TEST(TransferTest, AnImportThatFailsStoresNothing) {
  ASSERT_TRUE(this->store->exportTo(this->folder / "r.jsonl"));
  std::string whole = bytesOf(this->folder / "r.jsonl");
  auto refused = [&](const std::string& bytes, const std::string& name, const std::string& message) {
    std::string path = this->folder / name;
    write(path, bytes);
    TypeParam empty;
    auto other = opened(empty.where());
    auto merged = other->importFrom(path);
    ASSERT_FALSE(merged.isOk());
    EXPECT_THAT(merged.status().message(), HasSubstr(path + message));
    EXPECT_EQ(*other->count({.stale = Filter::Stale::Include}), 0);
    EXPECT_TRUE(other->forEachText(
        TextKind::Workload, [](const std::string&, const std::string&) { return Status::error("a text is there"); }));
    // And the store is as good as before.
    EXPECT_EQ(other->importFrom(this->folder / "small.jsonl")->texts, 2);
  };
  write(this->folder / "small.jsonl", headLine() + "\n" + textLine(TextKind::Workload, "contraction f32 s56 s56") +
                                          "\n" + textLine(TextKind::Machine, "a") + "\n");
  refused("", "empty.jsonl", ": is empty");
  refused(whole.substr(0, whole.size() - 10), "cut.jsonl", ":" + std::to_string(kRecords + 9) + ": not a JSON object");
  refused(whole.substr(whole.find('\n') + 1), "headless.jsonl", ":1: the head of a file of records is missing");
  refused(whole + R"({"workload":"x"})", "key.jsonl",
          ":" + std::to_string(kRecords + 10) + ": a record's workload is no key");
  refused(whole, "r.jsonl.gz", ": is not what gzip writes: incorrect header check");
  refused(whole, "r.jsonl.zst", ": is not what zstd writes: Unknown frame descriptor");
  std::string text = textLine(TextKind::Workload, "contraction f32 s56 s56") + "\n";
  size_t at = whole.find(text);
  ASSERT_NE(at, std::string::npos);
  refused(std::string(whole).erase(at, text.size()), "textless.jsonl", ":");
  for (const char* name : {"c.jsonl.gz", "c.jsonl.zst"}) {
    // A few records: compressing for size takes its time.
    ASSERT_TRUE(this->store->exportTo(this->folder / name, {.outcome = Outcome::Wrong}));
    std::string packed = bytesOf(this->folder / name);
    refused(packed.substr(0, packed.size() - 3), std::string("cut.") + name, ": is cut off");
    packed[packed.size() / 2] ^= 0x10;
    refused(packed, std::string("flipped.") + name, ":");
  }
}

TEST(JsonLinesTest, ErrorsNameWhatIsWrong) {
  SqlitePlace place;
  auto store = opened(place.where());
  std::string good = recordLine(RecordMaker(*store)(0), false);
  ASSERT_TRUE(parseLine(good).isOk());
  auto error = [](const std::string& line) { return parseLine(line).status().message(); };
  auto changed = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos);
    return error(line.replace(at, from.size(), to));
  };
  EXPECT_EQ(error("[1]"), "not a JSON object");
  EXPECT_EQ(error("{"), "not a JSON object");
  EXPECT_EQ(error(R"({"locution":"models","version":1})"), "not a file of records");
  EXPECT_EQ(error(R"({"locution":"records","version":2})"), "the file has version 2, this program knows version 1");
  EXPECT_EQ(error(R"({"locution":"records"})"), "the field \"version\" is missing");
  EXPECT_EQ(error(R"({"kind":"song","text":"x"})"), "unknown kind of text \"song\"");
  EXPECT_EQ(error(R"({"text":"x"})"), "the field \"kind\" is missing");
  EXPECT_EQ(changed("\"ok\"", "\"fine\""), "the field \"outcome\" has a value of the wrong kind");
  EXPECT_EQ(changed("\"seed\":", "\"seed\":-"), "the field \"seed\" has a value of the wrong kind");
  EXPECT_EQ(changed("\"samples\":[", "\"samples\":[\"1\","), "the field \"samples\" has a value of the wrong kind");
  EXPECT_EQ(changed("\"samples\":[", "\"samples\":[-1,"), "a record's samples must be positive seconds");
  EXPECT_EQ(changed("\"proposer\"", "\"proposal\""), "unknown field \"proposal\"");
}

}  // namespace
}  // namespace locution::records
