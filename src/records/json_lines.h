// The lines of an exported file: a head, then a text or a record each.
#pragma once

#include <string>

#include "records/store.h"

namespace locution::records {

std::string headLine();
std::string textLine(TextKind kind, const std::string& text);
std::string recordLine(const Record& record, bool stale);

/// A line read back.
struct Line {
  enum class Kind { Head, Text, Record } kind = Kind::Head;
  TextKind textKind = TextKind::Workload;
  std::string text;
  Record record;
  bool stale = false;
};
/// Errors: not JSON, a field that is unknown, missing or of the wrong kind, a newer version.
Result<Line> parseLine(const std::string& line);

}  // namespace locution::records
