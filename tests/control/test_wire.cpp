// SPDX-License-Identifier: Apache-2.0
// The wire protocol: messages round-trip, and invalid bytes do no harm.
#include <gmock/gmock.h>

#include <random>
#include <vector>

#include "control/wire.hpp"

namespace triax::control {
namespace {

using ::testing::ElementsAre;
using Kind = Message::Kind;

std::string_view payload(std::string_view frame) {
  return frame.substr(4);
}

Message example() {
  Message message;
  message.kind = Kind::lost;
  message.id = 0xFEDCBA9876543210;
  message.number = -2;
  message.key = std::string("k\0y", 3);
  message.value = std::string(300, '\xFF');
  return message;
}

Hello hello() {
  Hello hello;
  hello.rank = 3;
  hello.world = 8;
  hello.pid = 4211;
  hello.host = "n7";
  hello.token = "secret";
  return hello;
}

TEST(Wire, MessagesComeBackWhole) {
  const std::string frame = encode(example());
  const auto read = decode_message(payload(frame));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, Kind::lost);
  EXPECT_EQ(read->id, 0xFEDCBA9876543210);
  EXPECT_EQ(read->number, -2);
  EXPECT_EQ(read->key, std::string("k\0y", 3));
  EXPECT_EQ(read->value, std::string(300, '\xFF'));
  EXPECT_EQ(payload(frame).size(), message_overhead() + 303);
}

TEST(Wire, NumbersAreLittleEndianAndTheLengthIsFirst) {
  Message message;
  message.kind = Kind::add;
  message.id = 1;
  message.number = 0x0203;
  message.key = "n";
  const std::string bytes("\x1a\0\0\0\x03\x01\0\0\0\0\0\0\0\x03\x02\0\0\0\0\0\0\x01\0\0\0n\0\0\0\0", 30);
  EXPECT_EQ(encode(message), bytes);
}

TEST(Wire, AHelloComesBackWholeAndFits) {
  const auto read = decode_hello(payload(encode(hello())));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->version, kProtocolVersion);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->world, 8);
  EXPECT_EQ(read->pid, 4211);
  EXPECT_EQ(read->host, "n7");
  EXPECT_EQ(read->token, "secret");
  Hello longest = hello();
  longest.host = std::string(255, 'h');
  longest.token = std::string(512, 't');
  EXPECT_LE(payload(encode(longest)).size(), kMaxHelloBytes);
}

TEST(Wire, AHelloOfAnotherVersionIsKnownByItsVersionAlone) {
  Hello later = hello();
  later.version = kProtocolVersion + 7;
  const std::string whole(payload(encode(later)));
  for (const std::string& frame : {whole, whole.substr(0, 12), whole + "and more"}) {
    const auto read = decode_hello(frame);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->version, kProtocolVersion + 7);
  }
  EXPECT_FALSE(decode_hello(whole.substr(0, 11)));
}

TEST(Wire, RejectsTruncatedAndOversizedMessages) {
  const std::string message(payload(encode(example()))), first(payload(encode(hello())));
  for (std::size_t size = 0; size < message.size(); ++size) EXPECT_FALSE(decode_message(message.substr(0, size)));
  for (std::size_t size = 0; size < first.size(); ++size) EXPECT_FALSE(decode_hello(first.substr(0, size)));
  EXPECT_FALSE(decode_message(message + '\0'));
  EXPECT_FALSE(decode_hello(first + '\0'));
  EXPECT_FALSE(decode_hello(message));
  for (const char kind : {'\0', '\x13', '\xFF'}) EXPECT_FALSE(decode_message(kind + message.substr(1)));
}

TEST(Wire, FramesAreCutFromAnyPieces) {
  const std::string stream = encode(example()) + encode(Message{}) + encode(example());
  for (const std::size_t piece : {1, 2, 3, 7, 64, 5000}) {
    FrameReader reader(kMaxFrameBytes);
    std::vector<std::size_t> sizes;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.append(std::string_view(stream).substr(at, piece));
      while (const auto frame = reader.take()) {
        EXPECT_TRUE(decode_message(*frame));
        sizes.push_back(frame->size());
      }
    }
    EXPECT_THAT(sizes, ElementsAre(message_overhead() + 303, message_overhead(), message_overhead() + 303));
    EXPECT_FALSE(reader.too_long());
  }
}

TEST(Wire, AFrameBeyondTheLimitIsKnownByItsLengthAlone) {
  FrameReader reader(kMaxHelloBytes);
  reader.append(std::string_view("\x01\x04\0", 3));
  EXPECT_FALSE(reader.too_long());
  reader.append(std::string_view("\0", 1)); // 1025
  EXPECT_TRUE(reader.too_long());
  EXPECT_FALSE(reader.take());
  FrameReader web(kMaxHelloBytes);
  web.append("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(web.too_long());
}

TEST(WireFuzz, RandomBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
    FrameReader reader(100);
    reader.append(bytes);
    while (const auto frame = reader.take()) {
      decode_message(*frame);
      decode_hello(*frame);
    }
    decode_message(bytes);
    EXPECT_FALSE(decode_hello(bytes)); // without the magic number
  }
}

TEST(WireFuzz, ChangedMessagesAreReadAsTheyAreOrNotAtAll) {
  std::mt19937 random(8);
  const std::string valid[] = {std::string(payload(encode(example()))), std::string(payload(encode(hello())))};
  for (int round = 0; round < 20000; ++round) {
    std::string frame = valid[round % 2];
    for (std::uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      switch (random() % 4) {
        case 0:
          frame[random() % frame.size()] = static_cast<char>(random());
          break;
        case 1:
          frame[random() % frame.size()] ^= static_cast<char>(1u << random() % 8);
          break;
        case 2:
          frame.insert(random() % frame.size(), 1 + random() % 9, static_cast<char>(random()));
          break;
        default:
          if (frame.size() > 9) frame.erase(random() % (frame.size() - 8), random() % 8);
      }
    }
    if (const auto message = decode_message(frame)) {
      EXPECT_EQ(payload(encode(*message)), frame);
    }
    if (const auto first = decode_hello(frame); first && first->version == kProtocolVersion) {
      EXPECT_EQ(payload(encode(*first)), frame);
    }
  }
}

TEST(Wire, BeatsComeOftenButNotTooManyForTheServer) {
  EXPECT_EQ(beat_interval_s(8, 600), 0.25);
  EXPECT_EQ(beat_interval_s(4096, 600), 1);
  EXPECT_EQ(beat_interval_s(4096, 2), 0.5);
  EXPECT_EQ(beat_interval_s(2, 0.4), 0.1);
}

} // namespace
} // namespace triax::control
