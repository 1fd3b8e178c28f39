// Reading and writing protobuf messages: as a stream, within limits, and quietly.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <span>
#include <string>

#include "support/status.h"

namespace locution::frontend {

/// Parses the file into `message` through a small buffer: the file and the message are never in memory together. `what` ("an ONNX
/// model") is for the message. Errors (with the path): missing, not a regular file, 2 GB or more, not parsable.
Status parseProtoFile(const std::string& path, const char* what, google::protobuf::MessageLite& message);
Status parseProtoBytes(std::span<const std::byte> bytes, const char* what, google::protobuf::MessageLite& message);
/// Writes under a temporary name and renames: never half a file.
Status writeProtoFile(const std::string& path, const google::protobuf::MessageLite& message);
/// The folder of a path ("." when it has none).
std::string folderOf(const std::string& path);
/// The last part of a path, for messages.
std::string fileNameOf(const std::string& path);

}  // namespace locution::frontend
