// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files: what is written reads back, and files that are not valid are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.hpp"
#include "checksum/checksum.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string with_length(const std::string& json) {
  const std::uint64_t length = json.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + json;
}

class Safetensors : public ::testing::Test {
 protected:
  SafetensorsHeader read(const std::string& bytes) const {
    test::write_file(folder_ / "x.safetensors", bytes);
    return read_header(os::InputFile(folder_ / "x.safetensors"), folder_ / "x.safetensors");
  }
  std::string refusal(const std::string& bytes) const {
    return test::error_of([&] { read(bytes); });
  }
  /// Of a header with one tensor of 8 bytes, whose entry is this.
  std::string refusal_of(const std::string& entry) const {
    return refusal(with_length("{\"a\":" + entry + "}") + std::string(8, 'x'));
  }
  test::TempFolder folder_;
};

TEST_F(Safetensors, WhatIsWrittenReadsBack) {
  std::vector<TensorEntry> entries = {{"a", DType::f32, {2, 3}},
                                      {"b \"quoted\"", DType::f64, {}},
                                      {"c", DType::u8, {5}},
                                      {"none", DType::bf16, {0, 7}}};
  const std::string header = make_header(entries, std::vector<std::pair<std::string, std::string>>{{"format", "pt"}});
  EXPECT_EQ(header.size() % 8, 0u);
  EXPECT_EQ(entries[2].begin, 32u);
  const SafetensorsHeader read_back = read(header + std::string(37, 'x'));
  EXPECT_EQ(read_back.bytes, header.size());
  ASSERT_EQ(read_back.entries.size(), 4u);
  EXPECT_EQ(read_back.entries[0].name, "a");
  EXPECT_EQ(read_back.entries[0].shape, (Shape{2, 3}));
  EXPECT_EQ(read_back.entries[1].name, "b \"quoted\"");
  EXPECT_EQ(read_back.entries[1].dtype, DType::f64);
  EXPECT_EQ(read_back.entries[2].begin, 32u);
  EXPECT_EQ(read_back.entries[3].bytes(), 0u);
}

TEST_F(Safetensors, RefusesWhatIsNotAHeader) {
  EXPECT_THAT(refusal("short"), HasSubstr("x.safetensors: is too short for a header"));
  EXPECT_THAT(refusal(with_length("{}").substr(0, 9)), HasSubstr("its header would have 2 bytes, but the file has 9"));
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("its header would have 18446744073709551615 bytes"));
  EXPECT_THAT(refusal(with_length(" {}")), HasSubstr("does not begin with \"{\""));
  EXPECT_THAT(refusal(with_length("{\"a\":")), HasSubstr("is not valid JSON"));
  EXPECT_THAT(refusal(with_length("{\"a\":1}")), HasSubstr("tensor \"a\": needs dtype, shape and data_offsets"));
  EXPECT_THAT(refusal(with_length(std::string(100000, '['))), HasSubstr("does not begin with"));
  EXPECT_THAT(refusal(with_length(std::string("{}\0\0", 4))), HasSubstr("the header is not valid JSON at line 1"));
}

/// The file is sparse.
TEST_F(Safetensors, RefusesAHeaderThatIsTooLarge) {
  const std::filesystem::path file = folder_ / "x.safetensors";
  const std::uint64_t length = 100'000'001;
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  test::write_file(file, bytes);
  std::filesystem::resize_file(file, 200'000'000);
  EXPECT_THAT(test::error_of([&] { read_header(os::InputFile(file), file); }),
              HasSubstr("its header has 100000001 bytes; the maximum is 100000000"));
}

/// As the format's own reader does.
TEST_F(Safetensors, RefusesMetadataThatIsNotTexts) {
  for (const char* metadata : {"3", "[]", "\"text\"", R"({"a": 1})", R"({"a": "b", "c": null})", R"({"a": {}})"})
    EXPECT_THAT(refusal(with_length(text("{\"__metadata__\":{}}", metadata))),
                HasSubstr("__metadata__ is not an object of texts"))
        << metadata;
  for (const char* metadata : {"null", "{}", R"({"format": "pt", "a": ""})"})
    EXPECT_EQ(refusal(with_length(text("{\"__metadata__\":{}}", metadata))), "no error") << metadata;
}

TEST_F(Safetensors, RefusesAnEntryThatIsNotValid) {
  EXPECT_THAT(refusal_of(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})"),
              HasSubstr("dtype \"F33\" is not a type of the format"));
  EXPECT_THAT(refusal_of("{\"dtype\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') +
                         R"(,"shape":[2],"data_offsets":[0,8]})"),
              HasSubstr("the header is nested too deeply (more than "));
  EXPECT_THAT(refusal_of(R"({"dtype":[[]],"shape":[2],"data_offsets":[0,8]})"), HasSubstr("dtype is not a text"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
              HasSubstr("do not fit its shape and dtype"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("its shape is not a list"));
  EXPECT_THAT(refusal_of(R"({"dtype":"BOOL","shape":[2,2.0,2],"data_offsets":[0,8]})"),
              HasSubstr("its shape is not a list"));
  EXPECT_THAT(refusal_of(R"({"dtype":"BOOL","shape":[9],"data_offsets":[0,8]})"), HasSubstr("do not fit its shape"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F4","shape":[15],"data_offsets":[0,8]})"), HasSubstr("do not fit its shape"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F6_E2M3","shape":[11],"data_offsets":[0,8]})"), HasSubstr("do not fit"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"),
              HasSubstr("its shape is not a list"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), HasSubstr("do not fit"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.0]})"), HasSubstr("not two offsets"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("has 8 bytes of data, but its header names 4"));
  EXPECT_THAT(refusal_of(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"),
              HasSubstr("begins at byte 4 instead of 0"));
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal_of(entry + ",\"a\":" + entry), HasSubstr("the header has the key \"a\" twice"));
}

/// Types of the format that Triax does not have, and shapes with too many dimensions, are not damage.
TEST_F(Safetensors, ReportsForeignTensors) {
  std::string json = "{", separator;
  std::uint64_t at = 0;
  const auto add = [&](const std::string& name, const std::string& dtype, const std::string& shape, int bytes) {
    json += text("{}\"{}\":{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}", separator, name, dtype, shape, at,
                 at + static_cast<std::uint64_t>(bytes));
    at += static_cast<std::uint64_t>(bytes);
    separator = ",";
  };
  for (const char* dtype : {"BOOL", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})
    add(dtype, dtype, "[3,1]", 3);
  for (const char* dtype : {"I16", "U16"}) add(dtype, dtype, "[3,1]", 6);
  add("U32", "U32", "[3]", 12);
  for (const char* dtype : {"U64", "C64"}) add(dtype, dtype, "[]", 8);
  add("F4", "F4", "[3,2]", 3);
  for (const char* dtype : {"F6_E2M3", "F6_E3M2"}) add(dtype, dtype, "[4]", 3);
  add("five", "F32", "[1,2,1,1,2]", 16);
  add("known", "U8", "[5]", 5);
  const SafetensorsHeader header = read(with_length(json + "}") + std::string(at, 'x'));
  ASSERT_EQ(header.entries.size(), 1u);
  EXPECT_EQ(header.entries[0].name, "known");
  EXPECT_EQ(header.entries[0].begin, at - 5);
  ASSERT_EQ(header.others.size(), 16u);
  EXPECT_EQ(header.others.front().dtype, "BOOL");
  EXPECT_EQ(header.others.front().shape, "[3, 1]");
  EXPECT_EQ(header.others.front().bytes, 3u);
  EXPECT_EQ(header.others.back().dtype, "F32");
  EXPECT_EQ(header.others.back().shape, "[1, 2, 1, 1, 2]");
  EXPECT_THAT(refusal(with_length(json + "}") + std::string(at + 1, 'x')), HasSubstr("bytes of data"));
}

/// The value that xxhsum -H2 of xxHash 0.8.1 prints.
TEST(CheckpointChecksum, IsXxh3Of128Bits) {
  Checksum empty;
  EXPECT_EQ(empty.text(), "99aa06d3014798d86001c324468d497f");
  Checksum parts;
  for (const char* part : {"the quick ", "", "brown fox"}) parts.add(std::as_bytes(std::span(part, std::strlen(part))));
  Checksum whole;
  whole.add(std::as_bytes(std::span("the quick brown fox", 19)));
  EXPECT_EQ(parts.text(), whole.text());
  EXPECT_NE(parts.text(), empty.text());
}

} // namespace
} // namespace triax::checkpoint
