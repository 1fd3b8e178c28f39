// Operators on strings: StringNormalizer, StringConcat, StringSplit, RegexFullMatch.
#include <algorithm>
#include <clocale>
#include <cwctype>
#include <memory>
#include <set>

#include "hostops/helpers.h"
#include "hostops/ops.h"
#include "hostops/regex.h"
#include "hostops/utf8.h"
#include "support/strings.h"

namespace locution::hostops {
namespace {

Status needStrings(const Tensor& t) {
  if (t.dtype() == DType::String) return Status::ok();
  return Status::error("the input must be strings, but is " + std::string(dtypeName(t.dtype())));
}

/// Case by Unicode, whatever the process's locale; by ASCII where the system lacks the C.UTF-8 locale.
class CaseMap {
 public:
  CaseMap() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {}
  ~CaseMap() {
    if (locale_) freelocale(locale_);
  }
  CaseMap(const CaseMap&) = delete;
  CaseMap& operator=(const CaseMap&) = delete;

  std::string lower(std::string_view text) const { return mapped(text, false); }
  std::string upper(std::string_view text) const { return mapped(text, true); }

 private:
  std::string mapped(std::string_view text, bool up) const {
    std::string out;
    while (!text.empty()) {
      uint32_t c = takeCodePoint(text);
      if (c < kInvalidUtf8) {
        auto w = static_cast<wint_t>(c);
        if (locale_)
          c = static_cast<uint32_t>(up ? towupper_l(w, locale_) : towlower_l(w, locale_));
        else if (c < 0x80)
          c = static_cast<uint32_t>(up ? toupper(static_cast<int>(c)) : tolower(static_cast<int>(c)));
      }
      appendCodePoint(out, c);
    }
    return out;
  }
  locale_t locale_;
};

bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// At runs of white space, with none left at either end of the text; after `most` splits the rest as it is.
std::vector<std::string> splitAtSpace(std::string_view text, int64_t most) {
  std::vector<std::string> out;
  while (!text.empty() && isSpace(text.back())) text.remove_suffix(1);
  for (;;) {
    while (!text.empty() && isSpace(text.front())) text.remove_prefix(1);
    if (text.empty()) return out;
    if (most >= 0 && static_cast<int64_t>(out.size()) == most) {
      out.emplace_back(text);
      return out;
    }
    size_t end = static_cast<size_t>(std::find_if(text.begin(), text.end(), isSpace) - text.begin());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}
std::vector<std::string> splitAt(std::string_view text, std::string_view delimiter, int64_t most) {
  std::vector<std::string> out;
  for (;;) {
    size_t at = text.find(delimiter);
    if (at == std::string_view::npos || (most >= 0 && static_cast<int64_t>(out.size()) == most)) {
      out.emplace_back(text);
      return out;
    }
    out.emplace_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
  }
}

}  // namespace

Status stringNormalizer(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_RETURN_IF_ERROR(needStrings(x));
  if (x.rank() != 1 && (x.rank() != 2 || x.dims()[0] != 1))
    return Status::error("the input must be [C] or [1, C], but is " + dimsText(x.dims()));
  std::string action = textAttr(call.attrs, "case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return Status::error("case_change_action must be NONE, LOWER or UPPER, but is " + quoted(action));
  bool caseSensitive = intAttr(call.attrs, "is_case_sensitive", 0) != 0;
  CaseMap cases;
  std::set<std::string> stopwords;
  for (const std::string& word : textsAttr(call.attrs, "stopwords"))
    stopwords.insert(caseSensitive ? word : cases.lower(word));
  std::vector<std::string> kept;
  for (const std::string& word : x.strings()) {
    if (!stopwords.empty() && stopwords.count(caseSensitive ? word : cases.lower(word)) > 0) continue;
    kept.push_back(action == "LOWER" ? cases.lower(word) : action == "UPPER" ? cases.upper(word) : word);
  }
  if (kept.empty()) kept.emplace_back();
  auto count = static_cast<int64_t>(kept.size());
  outputs[0] =
      Tensor::ofStrings(x.rank() == 1 ? std::vector<int64_t>{count} : std::vector<int64_t>{1, count}, std::move(kept));
  return Status::ok();
}

Status stringConcat(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor &x = call.tensor(0), &y = call.tensor(1);
  LOCUTION_RETURN_IF_ERROR(needStrings(x));
  LOCUTION_RETURN_IF_ERROR(needStrings(y));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> dims, broadcastDims(x.dims(), y.dims()));
  LOCUTION_RETURN_IF_ERROR(checkSize(DType::String, dims));
  Tensor left(DType::String, dims), right(DType::String, dims);
  gatherStrided(x, 0, broadcastStrides(x.dims(), dims), left);
  gatherStrided(y, 0, broadcastStrides(y.dims(), dims), right);
  for (size_t i = 0; i < left.strings().size(); ++i) left.strings()[i] += right.strings()[i];
  outputs[0] = std::move(left);
  return Status::ok();
}

Status stringSplit(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_RETURN_IF_ERROR(needStrings(x));
  std::string delimiter = textAttr(call.attrs, "delimiter", "");
  int64_t most = intAttr(call.attrs, "maxsplit", -1);
  std::vector<std::vector<std::string>> parts;
  size_t longest = 0;
  for (const std::string& text : x.strings()) {
    parts.push_back(delimiter.empty() ? splitAtSpace(text, most) : splitAt(text, delimiter, most));
    longest = std::max(longest, parts.back().size());
  }
  std::vector<int64_t> dims = x.dims();
  Tensor counts(DType::I64, dims);
  dims.push_back(static_cast<int64_t>(longest));
  LOCUTION_RETURN_IF_ERROR(checkSize(DType::String, dims));
  Tensor y(DType::String, dims);
  for (size_t i = 0; i < parts.size(); ++i) {
    counts.data<int64_t>()[i] = static_cast<int64_t>(parts[i].size());
    std::move(parts[i].begin(), parts[i].end(), y.strings().begin() + static_cast<int64_t>(i * longest));
  }
  outputs[0] = std::move(y);
  if (outputs.size() > 1) outputs[1] = std::move(counts);
  return Status::ok();
}

Status regexFullMatch(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  LOCUTION_RETURN_IF_ERROR(needStrings(x));
  LOCUTION_ASSIGN_OR_RETURN(Regex regex, Regex::parse(textAttr(call.attrs, "pattern", "")));
  Tensor y(DType::Bool, x.dims());
  for (size_t i = 0; i < x.strings().size(); ++i) y.data<uint8_t>()[i] = regex.matches(x.strings()[i]) ? 1 : 0;
  outputs[0] = std::move(y);
  return Status::ok();
}

}  // namespace locution::hostops
