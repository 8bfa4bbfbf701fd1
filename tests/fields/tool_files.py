"""Small files as the tools write them, after their published schemas."""

MOOSE = "b1352069-a39c-4a84-a949-60044271c0c1;mammalia;cetartiodactyla;cervidae;alces;alces;moose"
DEER = "5c7ce479-8a45-40b3-ae21-7c97dfae22f5;mammalia;cetartiodactyla;cervidae;odocoileus;virginianus;white-tailed deer"
BLANK = "f1856211-cfb7-4a5b-9158-c0f72fd09ee6;;;;;;blank"

SPECIESNET = {
    "predictions": [
        {
            "filepath": "site 1/a.jpg",
            "country": "USA",
            "admin1_region": "CA",
            "latitude": 37.0,
            "classifications": {"classes": [DEER, MOOSE, BLANK], "scores": [0.9, 0.05, 1e-05]},
            "detections": [{"category": "1", "label": "animal", "conf": 0.98, "bbox": [0.1, 0.2, 0.3, 0.4]}],
            "prediction": DEER,
            "prediction_score": 0.9,
            "prediction_source": "classifier",
            "model_version": "4.0.1a",
        },
        {"filepath": "site 1/b.jpg", "failures": ["CLASSIFIER"], "model_version": "4.0.1a"},
        {
            "filepath": "site 2/c.jpg",
            "classifications": {"classes": [MOOSE, DEER], "scores": [0.6, 0.4]},
            "prediction": MOOSE,
            "prediction_score": 0.6,
            "prediction_source": "classifier",
            "model_version": "4.0.1a",
        },
    ]
}

MEGADETECTOR = {
    "info": {"format_version": "1.4", "detector": "md_v5a.0.0.pt", "classifier": "somebody's"},
    "detection_categories": {"1": "animal", "2": "person", "3": "vehicle"},
    "classification_categories": {"0": "fox", "1": "skunk", "2": "turkey"},
    "images": [
        {
            "file": "north/0001.jpg",
            "detections": [
                {"category": "1", "conf": 0.926, "bbox": [0.0, 0.2762, 0.1539, 0.2825],
                 "classifications": [["0", 0.9], ["1", 0.05]]},
                {"category": "1", "conf": 0.061, "bbox": [0.0451, 0.1849, 0.3642, 0.4636]},
                {"category": "1", "conf": 0.5, "bbox": [0.5, 0.5, 0.1, 0.1], "classifications": [["2", 1]]},
            ],
        },
        {"file": "north/0002.jpg", "failure": "Failure image access", "detections": None},
        {"file": "south/0003.jpg", "detections": []},
    ],
}  # fmt: skip

BIRDNET = (
    "Start (s),End (s),Scientific name,Common name,Confidence,File\n"
    "0.0,3.0,Turdus merula,Eurasian Blackbird,0.8770,/rec/A/1.wav\n"
    "0.0,3.0,Parus major,Great Tit,0.1203,/rec/A/1.wav\n"
    "3.0,6.0,Parus major,Great Tit,0.5,/rec/A/1.wav\n"
    "0.0,3.0,Turdus merula,Eurasian Blackbird,0.3000,/rec/B/1.wav\n"
)

RAVEN = (
    "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\tCommon Name\tSpecies Code\t"
    "Confidence\tBegin Path\tFile Offset (s)\n"
    '1\tSpectrogram 1\t1\t0\t3.0\t0\t15000\tEurasian Blackbird\teurbla\t0.8770\t/rec/"A"/1.wav\t0\n'
    '2\tSpectrogram 1\t1\t0\t3.0\t0\t15000\tGreat Tit\tgretit1\t0.1203\t/rec/"A"/1.wav\t0\n'
    '3\tSpectrogram 1\t1\t3.0\t6.0\t0\t15000\tGreat Tit\tgretit1\t0.5000\t/rec/"A"/1.wav\t3.0\n'
)
