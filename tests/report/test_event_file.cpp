// SPDX-License-Identifier: Apache-2.0
// Event files of TensorBoard: checksums, framing, messages, a file per start. tests/report/test_tensorboard reads one
// with TensorBoard itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>

#include "report/event_encoding.hpp"
#include "report/event_file.hpp"
#include "support/temp_folder.hpp"

namespace triax::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number out{};
  std::memcpy(&out, bytes.substr(at).data(), sizeof out);
  return out;
}

std::uint32_t unmasked(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xA282EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

/// Checks lengths and checksums of all records.
std::vector<std::string> events_of(std::string_view bytes) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    const auto length = static_cast<std::size_t>(number_at<std::uint64_t>(bytes, 0));
    EXPECT_EQ(unmasked(number_at<std::uint32_t>(bytes, 8)), crc32c(bytes.substr(0, 8)));
    out.emplace_back(bytes.substr(12, length));
    EXPECT_EQ(unmasked(number_at<std::uint32_t>(bytes, 12 + length)), crc32c(out.back()));
    bytes.remove_prefix(12 + length + 4);
  }
  return out;
}

/// The fields of a protocol buffer message; numbers as text.
std::multimap<int, std::string> fields_of(std::string_view message) {
  std::multimap<int, std::string> out;
  const auto varint = [&message] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!message.empty()) {
    const std::uint64_t tag = varint();
    const int field = static_cast<int>(tag >> 3);
    const std::uint64_t wire = tag & 7;
    if (wire == 0) {
      out.emplace(field, std::to_string(varint()));
      continue;
    }
    const std::size_t size = wire == 1 ? 8 : wire == 5 ? 4 : static_cast<std::size_t>(varint());
    out.emplace(field, std::string(message.substr(0, size)));
    message.remove_prefix(size);
  }
  return out;
}

std::map<std::string, float> scalars_in(std::string_view event) {
  std::map<std::string, float> out;
  for (const auto& [field, value] : fields_of(fields_of(event).find(5)->second)) {
    const auto scalar = fields_of(value);
    out[scalar.find(1)->second] = number_at<float>(scalar.find(2)->second, 0);
  }
  return out;
}

TEST(EventEncoding, TheChecksumMatchesThePublishedVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu); // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventEncoding, MessagesHaveTheFieldsOfEventProto) {
  const auto version = fields_of(version_event(1.5));
  EXPECT_EQ(number_at<double>(version.find(1)->second, 0), 1.5);
  EXPECT_EQ(version.find(3)->second, "brain.Event:2");
  const auto start = fields_of(start_event(1.5, 300));
  EXPECT_EQ(start.find(2)->second, "300");
  EXPECT_EQ(fields_of(start.find(7)->second).find(1)->second, "1");
  const std::string event = scalar_event(2.5, 1'000'000, {{"loss", 5.25}, {"lr", 1e-3}});
  EXPECT_EQ(fields_of(event).find(2)->second, "1000000");
  EXPECT_THAT(scalars_in(event), ElementsAre(std::pair<std::string, float>{"loss", 5.25f}, std::pair{"lr", 1e-3f}));
}

class EventFiles : public testing::Test {
 protected:
  std::vector<std::string> read() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path())) files.push_back(entry.path());
    std::ranges::sort(files);
    std::vector<std::string> out;
    for (const fs::path& file : files) {
      std::ifstream in(file, std::ios::binary);
      for (std::string& event : events_of(std::string{std::istreambuf_iterator<char>(in), {}}))
        out.push_back(std::move(event));
    }
    return out;
  }

  fs::path path() const { return folder_.path() / "tensorboard"; }

  const test::TempFolder folder_;
  std::vector<std::string> problems_;
  const os::AppendFile::Observer observer_ = [this](const Error& problem, bool) {
    problems_.push_back(problem.what());
  };
};

TEST_F(EventFiles, BeginWithVersionAndStart) {
  EventFile file(path(), 1, observer_);
  StepRecord record;
  record.step = 1;
  record.loss = 5.25;
  record.grad_norm = std::numeric_limits<double>::quiet_NaN();
  record.eval_loss = 5.5;
  record.comm = {{"data", "comm-local", 1, 4096, 4096}};
  file.write(record);
  const std::vector<std::string> events = read();
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(fields_of(events[0]).count(3), 1);
  EXPECT_EQ(fields_of(events[1]).count(7), 1);
  const std::map<std::string, float> scalars = scalars_in(events[2]);
  EXPECT_EQ(scalars.at("loss"), 5.25f);
  EXPECT_EQ(scalars.at("eval_loss"), 5.5f);
  EXPECT_EQ(scalars.at("bytes_out/data"), 4096.f);
  EXPECT_EQ(scalars.count("grad_norm"), 0); // a skipped step has none
  EXPECT_EQ(scalars.count("loss_scale"), 0);
  EXPECT_EQ(file.missing(), 0);
}

TEST_F(EventFiles, AnEvaluationThatIsMadeLaterHasNoOtherValues) {
  EventFile file(path(), 5, observer_);
  StepRecord record;
  record.step = 4;
  record.eval_loss = 5.5;
  file.write_evaluation(record);
  record.eval_loss.reset();
  file.write_evaluation(record);
  const std::vector<std::string> events = read();
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(fields_of(events[2]).find(2)->second, "4");
  EXPECT_THAT(scalars_in(events[2]), ElementsAre(std::pair<std::string, float>{"eval_loss", 5.5f}));
}

TEST_F(EventFiles, OfALaterStartAreAfterEarlierOnes) {
  for (std::int64_t step = 1; step <= 3; ++step) {
    EventFile file(path(), step, observer_); // within a second
    StepRecord record;
    record.step = step;
    file.write(record);
  }
  std::vector<std::string> steps;
  for (const std::string& event : read())
    if (const auto fields = fields_of(event); fields.count(7) > 0) steps.push_back(fields.find(2)->second);
  EXPECT_THAT(steps, ElementsAre("1", "2", "3"));
}

TEST_F(EventFiles, ThatCannotBeCreatedDoNotEndTheRun) {
  std::ofstream(path()) << "a file where the folder should be";
  EventFile file(path(), 1, observer_);
  file.write({});
  file.write({});
  file.check();
  EXPECT_EQ(file.missing(), 2);
  EXPECT_EQ(problems_.size(), 1);
}

} // namespace
} // namespace triax::report
