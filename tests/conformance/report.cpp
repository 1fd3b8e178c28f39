#include "report.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "support/strings.h"

namespace locution::conformance {
namespace {

const char* wordOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::Compiled:
      return "compiled";
    case Outcome::Folded:
      return "folded";
    case Outcome::Host:
      return "host";
    case Outcome::Refused:
      return "refused";
    case Outcome::Wrong:
      return "wrong";
    case Outcome::Crashed:
      return "crashed";
    case Outcome::Hung:
      return "hung";
  }
  return "?";
}

std::string jsonString(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) >= 32) {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

std::string shortReason(const CaseResult& result) {
  std::string text = result.message.substr(0, result.message.find('\n'));
  static const std::regex kPath("[^ ']*/model\\.onnx: *"),
      kNode("node [0-9]+ (in [^:]*)?('[^']*' )?\\(([A-Za-z0-9_.]+)[^)]*\\): (inputs? [^:]*: )?"), kQuoted("'[^']*'"),
      kShape("\\b[0-9?]+(x[0-9?]+)+\\b|\\bscalar\\b"), kNumber("-?\\b[0-9]+(\\.[0-9]+)?(e-?[0-9]+)?\\b");
  text = std::regex_replace(text, kPath, "");
  text = std::regex_replace(text, kNode, "$3: ");
  text = std::regex_replace(text, kQuoted, "'..'");
  text = std::regex_replace(text, kShape, "S");
  if (result.outcome == Outcome::Wrong) text = std::regex_replace(text, kNumber, "N");
  if (text.size() > 160) text = text.substr(0, 157) + "...";
  return text;
}

Result<std::map<std::string, Outcome>> readExpected(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::error(path + ": can't read the list of expected passes");
  std::map<std::string, Outcome> expected;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t space = line.find(' ');
    std::string word = space == std::string::npos ? "" : line.substr(space + 1);
    bool known = false;
    for (Outcome o : {Outcome::Compiled, Outcome::Folded, Outcome::Host})
      if (word == wordOf(o)) {
        expected[line.substr(0, space)] = o;
        known = true;
      }
    if (!known) return Status::error(path + ": '" + line + "' is not NAME compiled|folded|host");
  }
  return expected;
}

std::string expectedText(const std::vector<NamedResult>& results) {
  std::string text = "# Cases of the ONNX node suite that pass: written by `conformance --update`.\n";
  for (const NamedResult& r : results)
    if (passed(r.result.outcome)) text += r.name + " " + wordOf(r.result.outcome) + "\n";
  return text;
}

std::vector<std::string> regressions(const std::vector<NamedResult>& results,
                                     const std::map<std::string, Outcome>& expected, bool anyForm) {
  std::vector<std::string> lines;
  for (const NamedResult& r : results) {
    Outcome outcome = r.result.outcome;
    if (outcome == Outcome::Crashed || outcome == Outcome::Hung) {
      lines.push_back(r.name + ": " + wordOf(outcome) + ": " + r.result.message);
      continue;
    }
    auto at = expected.find(r.name);
    if (at == expected.end() || outcome == at->second || outcome == Outcome::Compiled) continue;
    if (anyForm && passed(outcome)) continue;
    lines.push_back(r.name + ": expected " + wordOf(at->second) + ", is " + wordOf(outcome) + ": " + r.result.message);
  }
  return lines;
}

Result<Excuses> readExcuses(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::error(path + ": can't be read");
  Excuses excuses;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t space = line.find(' ');
    if (space == std::string::npos) return Status::error(path + ": '" + line + "' gives no reason");
    excuses.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return excuses;
}

std::string markdown(const std::vector<NamedResult>& results, const Excuses& excuses) {
  struct Counts {
    int total = 0;
    std::map<Outcome, int> by;
    std::set<std::string> hosts;
  };
  Counts all;
  std::map<std::string, Counts> byOp;
  std::map<std::string, std::vector<std::string>> reasons;
  for (const NamedResult& r : results) {
    Counts& c = byOp[r.op];
    for (Counts* counts : {&c, &all}) {
      ++counts->total;
      ++counts->by[r.result.outcome];
    }
    if (r.result.outcome == Outcome::Host)
      for (const std::string& host : splitText(r.result.message, ' ')) c.hosts.insert(host);
    if (!passed(r.result.outcome))
      reasons[std::string(wordOf(r.result.outcome)) + ": " + shortReason(r.result)].push_back(r.name);
  }
  std::ostringstream out;
  out << R"md(# ONNX conformance

Written by `build/release/test/conformance --update`; don't edit. The cases are the node tests of onnx 1.22.0, run on the
CPU target with the suite's tolerance (rtol 1e-3, atol 1e-7), dtypes and shapes exact.

- *compiled*: right, and every instruction is machine code of ours, a copy or a check;
- *folded*: right, and all of it known at compile time (most often because inputs decide shapes);
- *host*: right, and a host operator ran, or "(region)": a part compiled once its shapes were known;
- *refused*: a message when importing or compiling;
- *wrong*: another result, or a message when running.

)md";
  out << "| | cases |\n|---|---:|\n";
  int passes = all.by[Outcome::Compiled] + all.by[Outcome::Folded] + all.by[Outcome::Host];
  out << "| all | " << all.total << " |\n| pass | " << passes << " |\n";
  for (Outcome o : {Outcome::Compiled, Outcome::Folded, Outcome::Host, Outcome::Refused, Outcome::Wrong,
                    Outcome::Crashed, Outcome::Hung})
    out << "| " << wordOf(o) << " | " << all.by[o] << " |\n";
  out << "\n## By operator\n\nA case made from an operator's function body counts for that operator.\n\n"
         "| operator | cases | compiled | folded | host | fail | host operators that ran "
         "|\n|---|---:|---:|---:|---:|---:|---|\n";
  for (auto& [op, c] : byOp) {
    std::vector<std::string> hosts(c.hosts.begin(), c.hosts.end());
    int compiled = c.by[Outcome::Compiled], folded = c.by[Outcome::Folded], host = c.by[Outcome::Host];
    out << "| " << op << " | " << c.total << " | " << compiled << " | " << folded << " | " << host << " | "
        << c.total - compiled - folded - host << " | " << join(hosts, ", ") << " |\n";
  }
  out << "\n## What fails, by reason\n";
  for (const auto& [start, why] : excuses) {
    auto excused = [&, &s = start](const NamedResult& r) { return r.name.starts_with(s) && !passed(r.result.outcome); };
    auto count = std::count_if(results.begin(), results.end(), excused);
    if (count > 0) out << "\n`" << start << "...` (" << count << "): " << why << ".\n";
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> sorted(reasons.begin(), reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [reason, names] : sorted) {
    out << "\n" << names.size() << " × `" << reason << "`\n:";
    for (const std::string& name : names) out << " " << name;
    out << "\n";
  }
  return out.str();
}

std::string jsonLines(const std::vector<NamedResult>& results) {
  std::string text;
  for (const NamedResult& r : results)
    text += "{\"name\": " + jsonString(r.name) + ", \"op\": " + jsonString(r.op) + ", \"outcome\": \"" +
            wordOf(r.result.outcome) + "\", \"message\": " + jsonString(r.result.message) + "}\n";
  return text;
}

}  // namespace locution::conformance
