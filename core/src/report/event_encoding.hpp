// SPDX-License-Identifier: Apache-2.0
// Records of TensorBoard's event files, as bytes.
//
// A file is a sequence of TFRecords (tensorflow/core/lib/io/record_writer.h): length, masked CRC32C of the length,
// data, masked CRC32C of the data. The data is a protocol buffer message Event. The field numbers are those of
// tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto; the wire format is that of
// https://protobuf.dev/programming-guides/encoding/. Event files need five of their messages' fields, so that a
// library for protocol buffers is not worth its dependency.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triax::report {

struct Scalar {
  std::string tag;
  double value = 0;
};

/// The Castagnoli CRC (RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

/// The first event of a file: its format.
std::string version_event(double wall_time_s);
/// The run continues at this step: TensorBoard removes what it has read of this step and later ones.
std::string start_event(double wall_time_s, std::int64_t step);
/// Values are stored as 32-bit floats, as TensorBoard shows them.
std::string scalar_event(double wall_time_s, std::int64_t step, const std::vector<Scalar>& scalars);

/// An event as a TFRecord.
std::string event_record(std::string_view event);

} // namespace triax::report
