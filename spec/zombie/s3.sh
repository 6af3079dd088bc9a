#!/bin/bash
# zombie.sh with a bucket as its target.
TARGET=s3 exec "$(dirname "$0")/zombie.sh"
