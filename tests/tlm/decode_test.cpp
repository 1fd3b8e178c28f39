// Whatever the weights, every drawn sentence is legal, is applied, and is the same every time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "generator/rules.h"
#include "generator/tlm/decoder.h"
#include "language/choice_tokens.h"
#include "language/sentence.h"
#include "schedule/apply.h"
#include "tlm_kernels.h"

namespace locution::tests {
namespace {

using tlm::Decoded;
using tlm::Decoding;

std::vector<Decoded> decodeOrFail(tlm::Reader& reader, const Model& model, const space::Space& space,
                                  const Decoding& decoding) {
  auto out = tlm::decode(reader, *model.network, space, decoding);
  EXPECT_TRUE(out.isOk()) << out.status().message();
  return out.isOk() ? std::move(*out) : std::vector<Decoded>();
}

TEST(Decode, RandomWeightsSayWhatIsLegal) {
  // LOCUTION_TLM_DRAWN: how many of each kernel, for long runs.
  const char* asked = std::getenv("LOCUTION_TLM_DRAWN");
  const int64_t drawn = asked ? std::atoll(asked) : 32;
  int64_t sentences = 0, distinct = 0;
  for (uint64_t seed : {1, 2}) {
    const Model model(randomWeights(smallModel(), seed, 20));
    tlm::Reader reader(model.network, model.programs);
    for (const TargetSpec& target : severalTargets())
      for (const loop::Computation& kernel : smallKernels()) {
        const space::Space space(kernel, target);
        Decoding decoding;
        decoding.sentences = drawn;
        decoding.seed = seed;
        int64_t count = 0;
        std::set<std::string> seen;
        for (const Decoded& d : decodeOrFail(reader, model, space, decoding)) {
          count += d.count;
          ++distinct;
          const std::string text = language::planText(d.walk.choices());
          EXPECT_TRUE(seen.insert(text).second) << text;
          ASSERT_TRUE(d.walk.isDone()) << kernel.name;
          auto parsed = language::parsePlanText(space, text);
          ASSERT_TRUE(parsed.isOk()) << parsed.status().message();
          EXPECT_EQ(*parsed, d.walk.choices());
          auto applied = schedule::apply(kernel, d.walk.plan());
          EXPECT_FALSE(std::holds_alternative<schedule::ApplyError>(applied)) << text;
        }
        EXPECT_EQ(count, decoding.sentences) << kernel.name;
        sentences += count;
      }
  }
  EXPECT_GT(sentences, 3000);
  std::printf("%lld sentences, %lld of them different\n", static_cast<long long>(sentences),
              static_cast<long long>(distinct));
}

TEST(Decode, IsTheSameWhateverWasReadBefore) {
  const Model model(randomWeights(smallModel(), 3, 20));
  const TargetSpec target;
  const std::vector<loop::Computation> kernels = smallKernels();
  Decoding decoding;
  decoding.sentences = 8;
  decoding.wantsValues = true;
  auto textsOf = [&](tlm::Reader& reader, const loop::Computation& kernel) {
    const space::Space space(kernel, target);
    std::string out;
    for (const Decoded& d : decodeOrFail(reader, model, space, decoding))
      out += language::planText(d.walk.choices()) + " " + std::to_string(d.value) + "\n";
    return out;
  };
  tlm::Reader kept(model.network, model.programs);
  std::vector<std::string> forwards, backwards;
  for (const loop::Computation& k : kernels) forwards.push_back(textsOf(kept, k));
  for (auto k = kernels.rbegin(); k != kernels.rend(); ++k) {
    tlm::Reader fresh(model.network, model.programs);
    backwards.push_back(textsOf(fresh, *k));
  }
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
}

TEST(Decode, ReadsASentenceAlong) {
  const Model model(randomWeights(smallModel(), 4, 20));
  tlm::Reader reader(model.network, model.programs);
  const TargetSpec target;
  for (const loop::Computation& kernel : smallKernels()) {
    const space::Space space(kernel, target);
    Decoding decoding;
    decoding.sentences = 3;
    decoding.wantsValues = true;
    decoding.also = generator::analyticWalk(space).choices();
    int found = 0;
    for (const Decoded& d : decodeOrFail(reader, model, space, decoding)) {
      found += d.isAlso ? 1 : 0;
      EXPECT_EQ(d.isAlso, d.walk.choices() == *decoding.also);
    }
    EXPECT_EQ(found, 1) << kernel.name;
  }
}

TEST(Decode, ExponentialIsThatOfTheLibrary) {
  for (double x = 0; x > -40; x -= 0.0137) EXPECT_NEAR(tlm::portableExp(x) / std::exp(x), 1, 1e-14) << x;
  EXPECT_EQ(tlm::portableExp(0), 1);
  EXPECT_EQ(tlm::portableExp(-1e9), 0);
}

TEST(Decode, TokensOfChoicesAreTheirWords) {
  size_t choices = 0;
  for (language::Token t = 0; t < static_cast<language::Token>(language::vocabularySize()); ++t) {
    const auto choice = language::choiceOfToken(t);
    EXPECT_EQ(choice, space::parseChoice(language::wordOf(t)));
    if (!choice) continue;
    ++choices;
    EXPECT_EQ(language::tokenOfChoice(choice->first, choice->second), t);
    EXPECT_GE(t, language::firstChoiceToken());
  }
  EXPECT_GT(choices, 300U);
  EXPECT_EQ(language::tokenOfChoice(space::Decision::Rows, 1000), std::nullopt);
}

}  // namespace
}  // namespace locution::tests
