"""Train a member of the family: ``make pretrain MODEL=mini-xlmr`` (`family.pretraining`)."""

from family.pretraining import main

if __name__ == "__main__":
    main()
