// What every back end and JSON take as text: UTF-8 as Unicode defines it, without the zero byte that PostgreSQL can't hold.
#pragma once

#include <string_view>

namespace locution::records {

bool isPlainUtf8(std::string_view text);

}  // namespace locution::records
