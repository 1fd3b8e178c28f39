#include "records/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "records/fields.h"
#include "support/hash.h"

namespace locution::records {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Record complete() {
  Record r;
  r.workload = keyOf("w");
  r.target = keyOf("t");
  r.machine = keyOf("m");
  r.sentence = "cpu v64";
  r.proposer = "random";
  r.seed = 7;
  r.model = "bert";
  r.samples = {1e-5, 3e-5, 2e-5};
  r.incumbent = keyOf("i");
  r.ratio = 0.5;
  r.spread = 0.1;
  r.compiler = "0.1.0";
  r.code = "abc";
  r.grammar = 1;
  r.vocabularyCount = 2;
  r.vocabulary = "def";
  r.time = 3;
  return r;
}

template <typename T>
void change(T& value) {
  value = T(value + 1);
}
void change(std::string& value) { value = keyOf(value); }
void change(Outcome& value) { value = Outcome::Timeout; }
void change(std::vector<double>& value) { value.pop_back(); }
void change(std::optional<double>& value) { value = *value * 2; }

TEST(RecordTest, EveryFieldCountsForTheId) {
  std::set<std::string> ids = {complete().id()};
  size_t fields = 0;
  forEachField(complete(), [&](const char*, const auto&) { ++fields; });
  for (size_t i = 0; i < fields; ++i) {
    Record r = complete();
    size_t at = 0;
    forEachField(r, [&](const char*, auto& value) {
      if (at++ == i) change(value);
    });
    EXPECT_NE(r, complete());
    ids.insert(r.id());
  }
  EXPECT_EQ(ids.size(), fields + 1);
  EXPECT_EQ(complete().id(), complete().id());
}

TEST(RecordTest, TheIdIsPartOfTheFileFormat) {
  EXPECT_EQ(complete().id(), "316af45aecd0692bcbc8c9f09cb639ee");
  EXPECT_EQ(keyOf(""), "99aa06d3014798d86001c324468d497f");
}

TEST(RecordTest, TextsDontRunIntoEachOther) {
  Record a = complete(), b = complete();
  a.sentence = "ab";
  a.proposer = "c";
  b.sentence = "a";
  b.proposer = "bc";
  EXPECT_NE(a.id(), b.id());
}

TEST(RecordTest, ChecksNameTheField) {
  EXPECT_TRUE(complete().check());
  auto refused = [](auto&& spoil, const std::string& message) {
    Record r = complete();
    spoil(r);
    EXPECT_THAT(r.check().message(), HasSubstr(message));
  };
  refused([](Record& r) { r.workload = "ABCDEF"; }, "workload is no key");
  refused([](Record& r) { r.machine.clear(); }, "machine is no key");
  refused([](Record& r) { r.sentence.clear(); }, "sentence is missing");
  refused([](Record& r) { r.samples.clear(); }, "samples are missing");
  refused([](Record& r) { r.samples[1] = 0; }, "samples must be positive seconds");
  refused([](Record& r) { r.samples[1] = std::numeric_limits<double>::infinity(); },
          "samples must be positive seconds");
  refused([](Record& r) { r.ratio = std::numeric_limits<double>::quiet_NaN(); }, "ratio is no ratio");
  refused([](Record& r) { r.ratio = 0; }, "ratio must be positive");
  refused([](Record& r) { r.spread = -0.5; }, "spread is no ratio");
  refused([](Record& r) { r.incumbent.clear(); }, "incumbent is missing");
  refused([](Record& r) { r.incumbent = "x"; }, "incumbent is no key");
  refused([](Record& r) { r.time = -1; }, "time can't be negative");
  refused([](Record& r) { r.proposer = "\x80"; }, "proposer is not text in UTF-8");
}

TEST(RecordTest, OutcomesHaveNames) {
  for (Outcome o : {Outcome::Ok, Outcome::Wrong, Outcome::Crash, Outcome::Timeout})
    EXPECT_EQ(outcomeOf(outcomeName(o)), o);
  EXPECT_EQ(outcomeOf("fine"), std::nullopt);
}

TEST(RecordTest, Median) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({1.7e308, 1.7e308}), 1.7e308);
  EXPECT_EQ(complete().seconds(), 2e-5);
}

TEST(RecordTest, AMachineIsItsCpuAndItsProfile) {
  EXPECT_FALSE(cpuModel().empty());
  EXPECT_EQ(machineText("l1Bytes = 1\n"), "model = " + cpuModel() + "\nl1Bytes = 1\n");
}

}  // namespace
}  // namespace locution::records
