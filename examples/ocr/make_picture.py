#!/usr/bin/env python3
"""Draws sentence.png, the picture the demo reads: a line of DejaVu Sans on uneven paper.
usage: make_picture.py [FONT.ttf]"""
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

TEXT = "Every sentence is a valid program."


def main():
    font = ImageFont.truetype(sys.argv[1] if len(sys.argv) > 1 else "DejaVuSans.ttf", 34)
    width, height = 640, 64
    light = np.linspace(235, 190, width)[None, :] + np.linspace(8, -8, height)[:, None]
    picture = Image.fromarray(light.astype(np.uint8))
    ImageDraw.Draw(picture).text((width / 2, height / 2), TEXT, fill=40, font=font, anchor="mm")
    tilted = picture.rotate(0.6, Image.Resampling.BICUBIC, fillcolor=215)
    tilted.filter(ImageFilter.GaussianBlur(0.7)).save(Path(__file__).with_name("sentence.png"), optimize=True)


if __name__ == "__main__":
    main()
