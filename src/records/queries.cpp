// The store's questions about sentences: which are the best, and whose times still hold.
#include <algorithm>
#include <cmath>

#include "records/columns.h"
#include "records/condition.h"
#include "records/database.h"
#include "records/store.h"

namespace locution::records {
namespace {

/// The records of one sentence.
struct Measured {
  std::string sentence;
  std::vector<std::string> ids;
  std::vector<double> values;
  bool failed = false;
};

std::string nearestId(const Measured& measured, double value) {
  auto distance = [&](double v) { return std::abs(v - value); };
  auto at = std::min_element(measured.values.begin(), measured.values.end(),
                             [&](double a, double b) { return distance(a) < distance(b); });
  return measured.ids[static_cast<size_t>(at - measured.values.begin())];
}

}  // namespace

Result<std::vector<Best>> Store::best(const std::string& workload, const std::string& target, const Filter& filter,
                                      Rank rank, int limit) {
  Filter among = filter;
  among.workload = workload;
  among.target = target;
  among.outcome.reset();
  Condition condition(among);
  std::vector<Measured> sentences;
  Status status =
      database_->query(std::string("SELECT sentence, id, outcome, ") + (rank == Rank::Ratio ? "ratio" : "seconds") +
                           " FROM records WHERE " + condition.sql + " ORDER BY sentence, time, id",
                       condition.parameters, [&](Row& row) {
                         std::string sentence = textIn(row[0]);
                         if (sentences.empty() || sentences.back().sentence != sentence)
                           sentences.emplace_back().sentence = std::move(sentence);
                         Measured& measured = sentences.back();
                         const auto* value = std::get_if<double>(&row[3]);
                         if (textIn(row[2]) != outcomeName(Outcome::Ok)) {
                           measured.failed = true;
                         } else if (value) {
                           measured.ids.push_back(textIn(row[1]));
                           measured.values.push_back(*value);
                         }
                       });
  if (!status.isOk()) return status.withContext(place());

  std::erase_if(sentences, [](const Measured& m) { return m.failed || m.values.empty(); });
  std::vector<std::pair<double, size_t>> ranking;
  for (size_t i = 0; i < sentences.size(); ++i) ranking.emplace_back(median(sentences[i].values), i);
  std::sort(ranking.begin(), ranking.end());
  if (ranking.size() > static_cast<size_t>(std::max(limit, 0))) ranking.resize(static_cast<size_t>(std::max(limit, 0)));

  std::vector<Best> found;
  for (auto [value, i] : ranking) {
    Value parameters[] = {workload, target, nearestId(sentences[i], value)};
    std::optional<Result<Record>> record;
    status =
        database_->query("SELECT " + recordColumns() + " FROM records WHERE workload = $1 AND target = $2 AND id = $3",
                         parameters, [&](Row& row) { record = recordOf(row); });
    if (status.isOk() && record && !record->isOk()) status = record->status();
    if (!status.isOk()) return status.withContext(place());
    if (record) found.push_back({std::move(**record), value, static_cast<int64_t>(sentences[i].values.size())});
  }
  return found;
}

Result<int64_t> Store::codeIs(const std::string& workload, const std::string& target, const std::string& sentence,
                              const std::string& code, const std::string& compiler) {
  auto marked = [&]() -> Result<int64_t> {
    LOCUTION_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*database_, Database::Begin::Write));
    Value parameters[] = {workload, target, sentence, code};
    LOCUTION_ASSIGN_OR_RETURN(
        int64_t changed,
        database_->run("UPDATE records SET stale = 1 - stale WHERE workload = $1 AND target = $2 AND sentence = $3"
                       " AND stale <> CASE WHEN code = $4 THEN 0 ELSE 1 END",
                       parameters));
    Value confirmed[] = {workload, target, sentence, compiler};
    LOCUTION_RETURN_IF_ERROR(
        database_
            ->run("UPDATE records SET confirmed = $4 WHERE workload = $1 AND target = $2 AND sentence = $3"
                  " AND stale = 0 AND confirmed <> $4",
                  confirmed)
            .status());
    LOCUTION_RETURN_IF_ERROR(transaction.commit());
    return changed;
  }();
  return marked.isOk() ? marked : marked.status().withContext(place());
}

Result<int64_t> Store::compilerIs(const std::string& version) {
  Value parameters[] = {version};
  auto marked = database_->run("UPDATE records SET stale = 1 WHERE stale = 0 AND confirmed <> $1", parameters);
  return marked.isOk() ? marked : marked.status().withContext(place());
}

}  // namespace locution::records
